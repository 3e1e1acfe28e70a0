# Restores the files that an interrupted renewal of certificates has left. It is part of the
# program that renews them, and of "cluster up". R is the host's root.
K=$R/etc/kubernetes
W=$R/var/lib/paictl/certificates

# c_restore may itself be interrupted at any point, and repeated.
c_restore() {
	c_manifests
	c_undo
}

# c_manifests: earlier versions restarted the control plane by moving its manifests into a
# folder renew.XXXXXX for 25 seconds. A manifest that was written again since then stays.
c_manifests() {
	for d in "$K"/renew.*; do
		[ -d "$d" ] || continue
		mkdir -p "$K/manifests"
		for f in "$d"/*.yaml; do
			[ -f "$f" ] || continue
			if [ -e "$K/manifests/${f##*/}" ]; then
				rm -f "$f"
			else
				mv "$f" "$K/manifests/"
				echo "put back /etc/kubernetes/manifests/${f##*/}" >&2
			fi
		done
		rmdir "$d" 2>/dev/null || true
	done
}

# c_undo restores a certificate and its key to their state before their renewal: kubeadm
# writes one after the other. The folder "undo" exists from before the first byte is
# written until both are on the disk. The folder of an earlier cluster is discarded.
c_undo() {
	if [ -d "$W/undo" ]; then
		if cmp -s "$W/undo/ca.crt" "$K/pki/ca.crt"; then
			(cd "$W/undo/files" && find . -type f) | while IFS= read -r f; do
				cp -p "$W/undo/files/$f" "$K/$f.paictl-new"
				sync "$K/$f.paictl-new"
				mv -f "$K/$f.paictl-new" "$K/$f"
				sync "$K/${f%/*}"
				echo "put back /etc/kubernetes/${f#./}, whose renewal was interrupted" >&2
			done
		fi
		mv "$W/undo" "$W/gone.$$"
	fi
	rm -rf "$W"/gone.* "$W/new"
}

# c_chain OLD NEW: copies the certificates after a server's own from OLD to the end of NEW: a certificate of the authority, signed by the previous
# authority, for programs that know only that one. The authority is the same in both files.
c_chain() {
	[ -f "$1" ] || return 0
	awk '/^-----BEGIN CERTIFICATE-----/ { n++ } n > 1 { print }' "$1" >>"$2"
}
