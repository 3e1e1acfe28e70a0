#!/bin/sh
# Installs paictl for this machine from a release. It verifies the signature of checksums.txt with the public key below, by minisign or by
# openssl 3, and then the checksum of the download. It doesn't verify itself: compare the key with the one in the project's documents.
#
#   sh install.sh [--version VERSION] [--prefix DIR] [--address URL] [--key KEY] [--checksum-only]
set -eu

version='' # set by make release
address='https://github.com/openpai/paictl/releases' # set by make release
public_key='' # set by make release
prefix=/usr/local
signature=required

fail() {
	echo "install.sh: $1" >&2
	if [ $# -gt 1 ]; then echo "  -> $2" >&2; fi
	exit 1
}

# get URL FILE. A redirect from HTTPS to HTTP is an error. wget can't refuse one, so it needs the signature.
get() {
	redirects='=https'
	case $1 in http:*) redirects='=http,https' ;; esac
	if command -v curl >/dev/null; then
		curl -fsSL --proto-redir "$redirects" --retry 3 -o "$2" "$1" || fail "can't download $1" "name another address: --address URL"
	elif [ $signature = ignored ] && [ $redirects = =https ]; then
		fail "--checksum-only needs curl, because wget follows redirects from HTTPS to HTTP" "install curl, or verify the signature"
	elif command -v wget >/dev/null; then
		wget -q -O "$2" "$1" || fail "can't download $1" "name another address: --address URL"
	else
		fail "this machine has neither curl nor wget" "install curl"
	fi
}

sha256() {
	if command -v sha256sum >/dev/null; then
		sha256sum "$1" | cut -d ' ' -f 1
	elif command -v shasum >/dev/null; then
		shasum -a 256 "$1" | cut -d ' ' -f 1
	else
		openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
	fi
}

# part FILE FIRST COUNT prints bytes of a file.
part() { dd if="$1" bs=1 skip="$2" count="$3" 2>/dev/null; }

# verified_by_openssl checks both signatures of the file by the rules of minisign: one of the list's BLAKE2b-512, and one of that signature
# with the trusted comment. openssl can do so since release 3.
verified_by_openssl() {
	printf '%s' "$public_key" | openssl base64 -d -A >key.raw
	sed -n 2p checksums.txt.minisig | tr -d '\n' | openssl base64 -d -A >sig.raw
	sed -n 4p checksums.txt.minisig | tr -d '\n' | openssl base64 -d -A >global.sig
	[ "$(wc -c <key.raw)" -eq 42 ] || return 1
	[ "$(wc -c <sig.raw)" -eq 74 ] || return 1
	[ "$(wc -c <global.sig)" -eq 64 ] || return 1
	[ "$(part sig.raw 0 2)" = ED ] || return 1
	[ "$(part sig.raw 2 8 | od -An -tx1)" = "$(part key.raw 2 8 | od -An -tx1)" ] || return 1
	# The fixed first part is the header of a public key of Ed25519 in DER.
	printf -- '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA%s\n-----END PUBLIC KEY-----\n' "$(part key.raw 10 32 | openssl base64 -A)" >key.pem
	part sig.raw 10 64 >list.sig
	openssl dgst -blake2b512 -binary checksums.txt >list.hash
	{
		cat list.sig
		sed -n 3p checksums.txt.minisig | tr -d '\n' | sed 's/^trusted comment: //' | tr -d '\n'
	} >comment
	openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in list.hash -sigfile list.sig >/dev/null 2>&1 &&
		openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in comment -sigfile global.sig >/dev/null 2>&1
}

verify_signature() {
	[ -n "$public_key" ] || fail "this install.sh has no public key" "give it by --key, or accept checksums without a signature by --checksum-only"
	if command -v minisign >/dev/null; then
		minisign -V -q -P "$public_key" -m checksums.txt || fail "checksums.txt doesn't match its signature" "don't use this release"
	elif openssl pkeyutl -help 2>&1 | grep -q rawin && openssl dgst -blake2b512 /dev/null >/dev/null 2>&1; then
		verified_by_openssl || fail "checksums.txt doesn't match its signature" "don't use this release"
	else
		fail "this machine can't verify the signature" "install minisign, or openssl 3; --checksum-only does without a signature"
	fi
}

main() {
	while [ $# -gt 0 ]; do
		case $1 in
		--version | --prefix | --address | --key)
			[ $# -gt 1 ] || fail "$1 needs a value"
			case $1 in
			--version) version=$2 ;;
			--prefix) prefix=$2 ;;
			--address) address=$2 ;;
			--key) public_key=$2 ;;
			esac
			shift 2
			;;
		--checksum-only)
			signature=ignored
			shift
			;;
		*) fail "unexpected argument $1" "sh install.sh [--version VERSION] [--prefix DIR] [--address URL] [--key KEY] [--checksum-only]" ;;
		esac
	done
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "paictl isn't released for $(uname -s)" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "paictl isn't released for $(uname -m)" ;;
	esac
	mkdir -p "$prefix/bin" "$prefix/share/paictl" 2>/dev/null || true
	if [ ! -w "$prefix/bin" ] || [ ! -w "$prefix/share/paictl" ]; then
		fail "can't write into $prefix" "run it as root, or name another folder: --prefix ~/.local"
	fi
	prefix=$(cd "$prefix" && pwd)

	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	cd "$work"
	address=${address%/}
	from=$address/latest/download
	[ -z "$version" ] || from=$address/download/$version
	get "$from/checksums.txt" checksums.txt
	if [ $signature = required ]; then
		get "$from/checksums.txt.minisig" checksums.txt.minisig
		verify_signature
		# The comment is signed, too: an old release can't pass for the requested one.
		signed=$(sed -n 3p checksums.txt.minisig | tr '\t' '\n' | sed -n 's/^paictl://p')
		[ -n "$signed" ] || fail "the signature doesn't name a release of paictl"
		[ -z "$version" ] || [ "$version" = "$signed" ] || fail "$from is signed for $signed, not for $version"
		version=$signed
	fi
	[ -n "$version" ] || version=$(sed -n "s/^.*  paictl_\\(.*\\)_${os}_$arch\\.tar\\.gz\$/\\1/p" checksums.txt)

	name=paictl_${version}_${os}_$arch
	want=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' checksums.txt)
	[ -n "$want" ] || fail "the release doesn't have $name.tar.gz"
	get "$from/$name.tar.gz" "$name.tar.gz"
	got=$(sha256 "$name.tar.gz")
	[ "$got" = "$want" ] || fail "$name.tar.gz has sha256 $got, but checksums.txt says $want" "don't use this file; try again, or another address"
	tar -xzf "$name.tar.gz"

	# A rename replaces a program that runs.
	for program in "$name"/bin/*; do
		program=${program##*/}
		cp "$name/bin/$program" "$prefix/bin/.$program.new"
		chmod 755 "$prefix/bin/.$program.new"
		mv "$prefix/bin/.$program.new" "$prefix/bin/$program"
	done
	cp -R "$name/share/." "$prefix/share/"
	rm -f "$prefix/share/paictl/checksums.txt" "$prefix/share/paictl/checksums.txt.minisig"
	cp checksums.txt* "$prefix/share/paictl/"
	echo "installed paictl $version in $prefix/bin/paictl"
	if [ $signature = ignored ]; then echo "its signature was not verified" >&2; fi
}

main "$@"
