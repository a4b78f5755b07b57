#!/bin/sh
# An errand for the lab with curl: lists, pages, adds and orders. Needs PETSTORE_URL and PETSTORE_KEY.
# curl waits as Retry-After says, and longer each time where nothing is told; the key of a POST stays for all its tries.
set -eu
head=$(mktemp)
trap 'rm -f "$head"' EXIT

ask() { # METHOD PATH [BODY]
  method=$1 path=$2
  shift 2
  [ "$method" = POST ] && set -- -H "Idempotency-Key: $(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" -d "$1"
  curl -sS --retry 7 --retry-all-errors -D "$head" -X "$method" -H "Authorization: Bearer $PETSTORE_KEY" \
    -H 'Content-Type: application/json' "$@" "$PETSTORE_URL$path"
}

list() {
  next='/v1/pets?limit=10'
  while [ -n "$next" ]; do
    ask GET "$next" > /dev/null
    next=$(tr -d '\r' < "$head" | sed -n 's/^[Ll]ink: <\([^>]*\)>; rel="next".*/\1/p' | tail -n 1)
  done
}

for round in 1 2 3 4 5; do
  list
  id=$(ask POST /v1/pets "{\"name\":\"Rex $round\",\"categoryId\":1}" | sed 's/.*"id":\([0-9]*\).*/\1/')
  ask POST /v1/store/orders "{\"petId\":$id}" > /dev/null
done
ask POST /v1/store/orders '{"petId":9007199254740991}' > /dev/null # there is none: asking again would not help
list
