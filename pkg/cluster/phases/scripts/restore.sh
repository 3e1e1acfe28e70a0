# Puts a backup in place on the machine that founds a cluster. The folder RESTORE has its uploads.
RESTORE=$S/restore

# r_keys: restores the authorities and keys of the saved cluster, from which kubeadm makes the rest. Credentials that they signed stay valid.
r_keys() {
	own_file /etc/paictl/encryption.yaml
	mkdir -p "$R/etc/kubernetes"
	(umask 077; tar -C "$R/" -xf "$RESTORE/keys.tar" --no-same-owner etc)
	for f in ca etcd/ca front-proxy-ca; do
		f=$R/etc/kubernetes/pki/$f.crt
		[ ! -f "$f" ] || chmod 644 "$f"
	done
	chmod 755 "$R/etc/kubernetes" "$R/etc/kubernetes/pki" "$R/etc/kubernetes/pki/etcd" # as kubeadm makes them
}

# r_etcd IMAGE NAME URL: creates the only member of etcd from the snapshot, with etcd's own tool, from the image with which etcd will
# run. The tool writes to a folder beside the data's place, so that a single rename completes it. The revisions are higher than any
# after the backup, and earlier ones count as compacted: an external client that watches from one of these must list again
# instead of continuing. The caller sets ETCD_DIR.
r_etcd() {
	mkdir -p "$R$ETCD_DIR"
	chmod 700 "$R$ETCD_DIR"
	# The container of an earlier attempt may still be running.
	ctr -n k8s.io tasks delete --force paictl-restore >/dev/null 2>&1 || true
	ctr -n k8s.io containers delete paictl-restore >/dev/null 2>&1 || true
	rm -rf "$R$ETCD_DIR/paictl-restore"
	ctr -n k8s.io run --rm --mount "type=bind,src=$R$ETCD_DIR,dst=/data,options=rbind:rw" \
		--mount "type=bind,src=$RESTORE,dst=/restore,options=rbind:ro" "$1" paictl-restore \
		etcdutl snapshot restore /restore/etcd.db --data-dir /data/paictl-restore --name "$2" --initial-cluster "$2=$3" --initial-advertise-peer-urls "$3" \
		--bump-revision 1000000000 --mark-compacted >&2
	mv "$R$ETCD_DIR/paictl-restore/member" "$R$ETCD_DIR/member"
	rm -rf "$R$ETCD_DIR/paictl-restore"
	note change "etcd restored"
}

# r_room FOLDER SIZE SHA256: prints whether FOLDER already has a history of jobs, "placed" if it is this one, and the free KiB on the disks of the
# history and the other parts, "disk WHERE MOUNT KIB". It also prints the size of parts that an earlier attempt has uploaded. The caller sets
# ETCD_DIR.
r_room() {
	r_looked=none
	if [ -e "$R$1/archive.db" ]; then
		r_looked=there
		if [ "$(wc -c <"$R$1/archive.db")" -eq "$2" ]; then
			sha_in "$R$1/archive.db"
			[ "$sha" != "$3" ] || r_looked=placed
		fi
	fi
	printf 'history\t%s\n' "$r_looked"
	r_disk parts "$RESTORE"
	r_disk etcd "$R$ETCD_DIR"
	r_disk history "$R$1"
	for f in "$RESTORE/etcd.db" "$RESTORE/jobs.db"; do
		[ ! -f "$f" ] || printf 'brought\t%s\t%s\n' "${f##*/}" "$(wc -c <"$f" | tr -d ' ')"
	done
}

# r_disk WHERE FOLDER: prints the free space for the folder, which may not exist yet.
r_disk() {
	d=$2
	while [ -n "$d" ] && [ ! -d "$d" ]; do d=${d%/*}; done
	df -Pk "${d:-/}" | awk -v where="$1" 'NR == 2 { printf "disk\t%s\t%s\t%s\n", where, $6, $4 }'
}

# r_history FOLDER OWNER: puts the history of jobs in the folder of the job controller before the controller starts, since restarted jobs fetch their
# code from it. An existing history belongs to this machine, and is newer. If it is missing, the files beside it are from an earlier history: SQLite
# and the controller would merge them into this one, or use them instead.
r_history() {
	f=$R$1/archive.db
	if [ -e "$f" ]; then
		r_told there
		return 0
	fi
	mkdir -p "$R$1"
	cp "$RESTORE/jobs.db" "$f.paictl-new" # it may be another disk
	chmod 600 "$f.paictl-new"
	chown "$2:$2" "$R$1" "$f.paictl-new"
	rm -f "$f-wal" "$f-shm" "$f-journal" "$f.replaced" "$f.replaced.new" "$f.copy" "$f.copy.new" "$f.damaged" "$f.new"
	mv -f "$f.paictl-new" "$f"
	r_told placed
	note change "history of jobs restored"
}

# r_told WORD: records the result for the history of jobs until the end of the restore, which prints it.
r_told() { printf '%s\n' "$1" >"$RESTORE/history"; }

# r_volumes NODES: deletes the volumes of services on machines that are no longer in the layout: services couldn't start there, and get
# new volumes. The data in the folders stays. NODES are the machines of the layout.
r_volumes() {
	volumes=$(self get pv -l paictl.openpai.org/service --request-timeout=30s -o go-template='{{range .items}}{{if and .spec.local .spec.claimRef}}{{.metadata.name}} {{.spec.claimRef.namespace}} {{.spec.claimRef.name}}{{range .spec.nodeAffinity.required.nodeSelectorTerms}}{{range .matchExpressions}}{{range .values}} {{.}}{{end}}{{end}}{{end}}{{"\n"}}{{end}}{{end}}')
	printf '%s\n' "$volumes" | while read -r pv space claim at; do
		[ -n "$at" ] || continue
		case " $1 " in *" $at "*) continue ;; esac
		self delete pvc -n "$space" "$claim" --ignore-not-found --wait=false --request-timeout=60s >&2
		self delete pv "$pv" --ignore-not-found --wait=false --request-timeout=60s >&2
		note change "volume of $space/$claim on $at forgotten"
	done
}

# r_forget NODE NODES: removes the nodes of the saved cluster except for this one, and with them their pods. Those that are machines of this
# cluster, NODES, join again. It prints the result for the history of jobs. It uses this machine's own API server: a load balancer may still
# lead to an API server of the saved cluster.
r_forget() {
	i=0
	until self get --raw /readyz --request-timeout=10s >/dev/null 2>&1; do
		i=$((i + 1))
		[ "$i" -lt 240 ] || { echo "the API server is not ready after two minutes -> see journalctl -u kubelet and /var/log/pods on the host" >&2; exit 1; }
		sleep 0.5
	done
	# This isn't the saved cluster, which may still run: this record distinguishes the backups of the two. The schedule of backups may start
	# at once, and deletes old ones, so this comes before the steps that take time and may fail. A run that continues the restore keeps the
	# record.
	if [ ! -s "$RESTORE/restored" ]; then
		printf '%s-%s\n' "$(date -u +%Y%m%dT%H%M%SZ)" "$1" >"$RESTORE/restored.new"
		mv -f "$RESTORE/restored.new" "$RESTORE/restored"
	fi
	k_remember restored "$(cat "$RESTORE/restored")"
	others=$(self get nodes --request-timeout=30s -o name)
	for other in $others; do
		[ "$other" = "node/$1" ] || self delete node "${other#node/}" --request-timeout=60s >&2
	done
	# These jobs created the folders of volumes on disks that may be new now, and "service start" relies on a job that is done. It creates them again.
	self delete jobs -A -l paictl.openpai.org/volume --ignore-not-found --wait=false --request-timeout=60s >&2
	r_volumes "$2"
	[ ! -f "$RESTORE/history" ] || printf 'history\t%s\n' "$(cat "$RESTORE/history")"
	rm -rf "$RESTORE"
}
