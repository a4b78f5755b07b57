#!/bin/sh
# scripts/image.sh BINARY FOLDER: what the container holds. The single binary; flock, by which a second server is kept
# away from the store; the libraries that both are linked to; and, as the build left them beside the binary, the licences
# and the list of what is in it.
set -eu
root=$2
flock=$(command -v flock)

mkdir -p "$root/bin" "$root/data"
cp "$1" "$root/bin/petstore"
cp -L "$flock" "$root/bin/flock"
mkdir -p "$root/usr/share/doc/petstore"
beside=$(dirname "$1")
cp "$beside/THIRD-PARTY-NOTICES" "$beside/petstore.cdx.json" "$root/usr/share/doc/petstore/"

# Each library at the path where it is looked for; the loader is one of them.
libraries=$(ldd "$1" "$flock")
case $libraries in *'not found'*) printf '%s\n' "$libraries" >&2; exit 1 ;; esac
printf '%s\n' "$libraries" | grep -o '/[^ :]*\.so[^ ]*' | sort -u | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
