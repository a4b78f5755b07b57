#!/bin/sh
# petstore-backup.sh FOLDER KEEP: writes one more backup into FOLDER, and when that is whole and durable removes the
# oldest of those that this script wrote, so that KEEP are left. If the backup fails, nothing is removed. Backups that
# are named after this moment, by a clock that was ahead, are not counted and not removed: a line says so.
set -eu
umask 077
folder=$1
keep=$2
case $keep in '' | 0* | *[!0-9]*) echo "KEEP must be a whole number from 1, not '$keep'" >&2; exit 2 ;; esac

name=petstore-$(date -u +%Y-%m-%dT%H-%M-%SZ)
petstore backup "$folder/$name"

cd "$folder"
export LC_ALL=C
names() { ls | grep -xE 'petstore-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z' | awk "$@"; }
later=$(names -v own="$name" '$0 > own { n++ } END { print n + 0 }')
[ "$later" = 0 ] || echo "$later backups in $folder are named after this moment: they are not counted, and stay" >&2
names -v own="$name" '$0 < own' | sort | head -n "-$((keep - 1))" | while read -r old; do rm -f -- "$old"; done
