#!/bin/sh
# petstore-backup.sh FOLDER KEEP: writes one more backup into FOLDER, and when that is whole and durable removes the
# oldest of those that this script wrote, so that KEEP are left. If the backup fails, nothing is removed. The backup that
# was just written stays, wherever the clock stands.
set -eu
umask 077
folder=$1
keep=$2
case $keep in '' | 0* | *[!0-9]*) echo "KEEP must be a whole number from 1, not '$keep'" >&2; exit 2 ;; esac

name=petstore-$(date -u +%Y-%m-%dT%H-%M-%SZ)
petstore backup "$folder/$name"

cd "$folder"
ls | grep -xE 'petstore-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z' | grep -vxF "$name" | sort |
  head -n "-$((keep - 1))" | while read -r old; do rm -f -- "$old"; done
