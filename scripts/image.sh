#!/bin/sh
# scripts/image.sh BINARY FOLDER: what the container holds. The single binary; flock, by which a second server is kept
# away from the store; the libraries that both are linked to; the licences of all these: those of the binary, with the
# list of what is in it, as the build left them beside it, the others as Debian's packages have them.
set -eu
root=$2
flock=$(command -v flock)

mkdir -p "$root/bin" "$root/data"
cp "$1" "$root/bin/petstore"
cp -L "$flock" "$root/bin/flock"
mkdir -p "$root/usr/share/doc/petstore"
beside=$(dirname "$1")
cp "$beside/THIRD-PARTY-NOTICES" "$beside/petstore.cdx.json" "$root/usr/share/doc/petstore/"

# The licence of the package of Debian that FILE is from. The same file may be listed below / or below /usr.
licence_of() { # FILE
  command -v dpkg >/dev/null || return 0
  package=$( (dpkg -S "$1" || dpkg -S "/usr$1") 2>/dev/null | sed 's/:.*//; q')
  [ -n "$package" ] || { echo "no package of Debian has $1, so its licence is unknown" >&2; exit 1; }
  mkdir -p "$root/usr/share/doc/$package"
  cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/"
}
licence_of "$flock"

# Each library at the path where it is looked for; the loader is one of them.
libraries=$(ldd "$1" "$flock")
case $libraries in *'not found'*) printf '%s\n' "$libraries" >&2; exit 1 ;; esac
printf '%s\n' "$libraries" | grep -o '/[^ :]*\.so[^ ]*' | sort -u | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
  licence_of "$library"
done
