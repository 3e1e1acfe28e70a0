# Renews the control plane's certificates on this machine, and restarts the components that hold them.
#
#   renew-certificates          renews those that expire within 60 days, or have expired (daily, by a timer)
#   renew-certificates DAYS     renews those that expire within DAYS days
#   renew-certificates boot     runs before the kubelet starts: if no part of the control plane
#                               runs yet, it renews as above, and needs no restart
#
# It may be killed at any point: the next start restores half-written files, and makes the
# restarts that are still due. Certificate authorities are not renewed. The kubelet rotates its
# own certificate, so that is only renewed if it has expired.
#
# In $W, which only root may read: undo/ (the earlier state of the certificate that is being renewed), due/NAME
# (a component to restart; contains the time at which the earliest of its old certificates expires, in seconds).
DAY=86400
mode=${1:-daily}
days=60 force=0
case $mode in
daily | boot) ;;
*[!0-9]* | '')
	echo "usage: renew-certificates [DAYS | boot]" >&2
	exit 2
	;;
*) days=$mode force=1 ;;
esac
# A control plane machine has the authority's key, or the administrator's credentials where that key
# is kept elsewhere.
[ -f "$K/pki/ca.key" ] || [ -f "$K/admin.conf" ] || exit 0

# No script of "cluster up" may run at the same time. Such a script waits for us if it starts the
# kubelet, so with "boot" this one must not wait for it.
mkdir -p "$R/run"
exec 9>>"$R/run/paictl-host.lock"
wait=600
if [ "$mode" = boot ]; then wait=0; fi
flock -w "$wait" 9 || {
	if [ "$mode" = boot ]; then exit 0; fi
	echo "a script of paictl is still running on this host -> run later: systemctl start paictl-certificates.service" >&2
	exit 75
}

mkdir -p "$W/due"
chmod 700 "$W"
now=$(date +%s)
failed=0
CONF=$R/etc/paictl/kubeadm.yaml
TAB=$(printf '\t')
KUBECACHEDIR=$R/var/lib/paictl/kubectl-cache
export KUBECACHEDIR

complain() {
	echo "$1" >&2
	failed=1
}

# adm ARGS...: runs kubeadm with this cluster's settings. With their file, kubeadm doesn't query the
# API, which may be down because of these very certificates.
adm() {
	if [ -f "$CONF" ]; then set -- "$@" --config "$CONF"; fi
	kubeadm "$@"
}

# files_of CERTIFICATE: prints its files, relative to /etc/kubernetes.
files_of() {
	case $1 in
	*.conf) echo "$1" ;;
	etcd-*) echo "pki/etcd/${1#etcd-}.key pki/etcd/${1#etcd-}.crt" ;;
	*) echo "pki/$1.key pki/$1.crt" ;;
	esac
}

# holder_of CERTIFICATE: prints the component that has read it.
holder_of() {
	case $1 in
	apiserver | apiserver-* | front-proxy-client) echo kube-apiserver ;;
	etcd-*) echo etcd ;;
	controller-manager.conf) echo kube-controller-manager ;;
	scheduler.conf) echo kube-scheduler ;;
	esac
}

# due_now FILES LEFT: reports whether a certificate must be renewed. A certificate whose lifetime is less
# than twice the days would be renewed daily, so half of its lifetime must be over, too.
due_now() {
	[ "$2" -lt $((days * DAY)) ] || return 1
	if [ "$force" = 1 ] || [ "$2" -le 0 ]; then return 0; fi
	[ "$2" -lt $((now - $(stat -c %Y "$K/${1##* }"))) ]
}

# owe COMPONENT LEFT: records that it has to be restarted.
owe() {
	until=$((now + $2))
	if [ -f "$W/due/$1" ] && [ "$(expiry "$1")" -lt "$until" ]; then return 0; fi
	printf '%s\n' "$until" >"$W/due.new"
	sync "$W/due.new"
	mv -f "$W/due.new" "$W/due/$1"
	sync "$W/due"
}

# expiry COMPONENT: prints the time at which the earliest of the certificates that it holds expires.
expiry() {
	v=$(cat "$W/due/$1")
	case $v in '' | *[!0-9]*) v=0 ;; esac
	echo "$v"
}

# renew CERTIFICATE LEFT
renew() {
	files=$(files_of "$1")
	mkdir -p "$W/new/files"
	for f in $files; do
		mkdir -p "$W/new/files/$(dirname "$f")"
		cp -p "$K/$f" "$W/new/files/$f"
	done
	cp -p "$K/pki/ca.crt" "$W/new/ca.crt"
	find "$W/new" -exec sync {} +
	mv "$W/new" "$W/undo"
	sync "$W"
	if adm certs renew "$1" >&2 && ! cmp -s "$W/undo/files/${files##* }" "$K/${files##* }"; then
		case $1 in *.conf) ;; *) c_chain "$W/undo/files/${files##* }" "$K/${files##* }" ;; esac
		for f in $files; do sync "$K/$f"; done
		holder=$(holder_of "$1")
		if [ -n "$holder" ]; then owe "$holder" "$2"; fi
		mv "$W/undo" "$W/gone.$$"
		sync "$W"
		rm -rf "$W/gone.$$"
		echo "renewed $1: it had $(($2 / DAY)) days left"
		return 0
	fi
	c_undo
	complain "kubeadm did not renew $1, which has $(($2 / DAY)) days left -> on this host: kubeadm certs renew $1"
}

LIST='{{range .certificates}}certificate{{"\t"}}{{.name}}{{"\t"}}{{.residualTime}}{{"\t"}}{{.missing}}{{"\t"}}{{.externallyManaged}}{{"\n"}}{{end}}'
LIST=$LIST'{{range .certificateAuthorities}}authority{{"\t"}}{{.name}}{{"\t"}}{{.residualTime}}{{"\t"}}{{.missing}}{{"\t"}}{{.externallyManaged}}{{"\n"}}{{end}}'

# renew_all: a missing certificate isn't needed, since "kubeadm join" creates no super-admin.conf.
# An externally managed one can't be renewed here.
renew_all() {
	list=$(adm certs check-expiration -o "go-template=$LIST") || {
		complain "kubeadm can't say when certificates expire -> on this host: kubeadm certs check-expiration --config $CONF"
		return 0
	}
	while IFS=$TAB read -r kind name left missing external; do
		case $kind:$missing:$external in
		authority:false:*)
			if [ "$left" -lt $((180 * DAY)) ]; then
				echo "the certificate authority $name has $((left / DAY)) days left and is not renewed here -> paictl cluster certs rotate-ca" >&2
			fi
			;;
		certificate:false:false)
			if due_now "$(files_of "$name")" "$left"; then renew "$name" "$left"; fi
			;;
		esac
	done <<DATA
$list
DATA
}

# admin_conf creates the administrator's credentials again if they have been removed, as
# "cluster up" does: without them, the health of components can't be checked.
admin_conf() {
	if [ -f "$K/admin.conf" ] || [ ! -f "$CONF" ]; then return 0; fi
	rm -rf "$W/admin"
	if kubeadm init phase kubeconfig admin --config "$CONF" --kubeconfig-dir "$W/admin" >&2; then
		# The folders may be on two file systems, between which mv copies.
		cp -p "$W/admin/admin.conf" "$K/admin.conf.paictl-new"
		sync "$K/admin.conf.paictl-new"
		mv -f "$K/admin.conf.paictl-new" "$K/admin.conf"
		rm -rf "$W/admin"
		echo "made /etc/kubernetes/admin.conf again, which was missing"
	else
		complain "kubeadm did not make /etc/kubernetes/admin.conf again -> on this host: kubeadm init phase kubeconfig admin --config $CONF"
	fi
}

# kubelet_certificate: a kubelet whose client certificate has expired doesn't start, and so the
# control plane doesn't either. The authority's key is here, so the kubelet gets a new certificate.
kubelet_certificate() {
	current=/var/lib/kubelet/pki/kubelet-client-current.pem
	[ -f "$K/kubelet.conf" ] && [ -f "$K/pki/ca.key" ] || return 0
	rm -rf "$W/probe"
	mkdir "$W/probe"
	# kubeadm only reports the expiry of certificates in its own folder, so the kubelet's takes
	# the place of another one in a copy of that folder.
	ln -s "$K/pki"/* "$W/probe/"
	rm -f "$W/probe/apiserver.crt"
	if grep -q 'client-certificate-data:' "$K/kubelet.conf"; then
		awk '$1 == "client-certificate-data:" { print $2 }' "$K/kubelet.conf" | base64 -d
	elif [ -f "$R$current" ]; then
		awk '/^-----BEGIN CERTIFICATE-----/ { on = 1 } on { print } /^-----END CERTIFICATE-----/ { exit }' "$R$current"
	fi >"$W/probe/apiserver.crt" || true
	left=
	if [ -s "$W/probe/apiserver.crt" ]; then
		left=$(kubeadm certs check-expiration --cert-dir "$W/probe" --kubeconfig "$W/none" -o \
			'go-template={{range .certificates}}{{if eq .name "apiserver"}}{{.residualTime}}{{end}}{{end}}') || left=
	fi
	rm -rf "$W/probe"
	case $left in -*) ;; *) return 0 ;; esac
	node=$(awk '/^nodeRegistration:/ { on = 1; next } /^[^ ]/ { on = 0 } on && $1 == "name:" { print $2; exit }' "$CONF")
	[ -n "$node" ] || { complain "the kubelet's certificate has expired, and $CONF does not name the node -> paictl cluster up" && return 0; }
	adm kubeconfig user --org system:nodes --client-name "system:node:$node" >"$W/kubelet.conf"
	new=kubelet-client-$(date -u +%Y-%m-%d-%H-%M-%S).pem
	for key in client-certificate-data client-key-data; do
		awk -v k="$key:" '$1 == k { print $2 }' "$W/kubelet.conf" | base64 -d
	done >"$R${current%/*}/$new"
	rm -f "$W/kubelet.conf"
	sync "$R${current%/*}/$new"
	ln -sfn "$new" "$R$current.paictl-new"
	mv -fT "$R$current.paictl-new" "$R$current"
	sync "$R${current%/*}"
	if grep -q 'client-certificate-data:' "$K/kubelet.conf"; then
		sed "s|client-certificate-data:.*|client-certificate: $current|; s|client-key-data:.*|client-key: $current|" "$K/kubelet.conf" >"$K/kubelet.conf.paictl-new"
		sync "$K/kubelet.conf.paictl-new"
		mv -f "$K/kubelet.conf.paictl-new" "$K/kubelet.conf"
	fi
	echo "renewed the kubelet's certificate, which had expired"
	# At boot, the kubelet doesn't run yet, so it isn't restarted, and waiting for it would never end.
	systemctl try-restart --no-block kubelet.service
}

# runs: reports whether any component of the control plane runs.
runs() { cat "$R"/proc/[0-9]*/comm 2>/dev/null | grep -qx -e etcd -e kube-apiserver -e kube-controller -e kube-scheduler; }

# probe COMPONENT: prints host, port, path and scheme of the probe in its manifest.
probe() {
	awk '
		$1 == "livenessProbe:" || $1 == "readinessProbe:" { on = 1 }
		on && $1 == "host:" { host = $2 }
		on && $1 == "path:" { path = $2 }
		on && $1 == "port:" { port = $2 }
		on && $1 == "scheme:" { scheme = tolower($2); on = 0 }
		$1 == "-" && $2 == "containerPort:" { number = $3 }
		$1 == "name:" && number != "" { named[$2] = number; number = "" }
		END { print host, (port in named) ? named[port] : port, path, scheme }' "$K/manifests/$1.yaml"
}

# ask CONFIG ARGS...: queries a server with kubectl, the only program on a host that speaks HTTP.
ask() {
	config=$1
	shift
	timeout -k 5 20 kubectl --kubeconfig="$config" --request-timeout=10s "$@" 2>/dev/null
}

healthy() {
	probe "$1" | {
		read -r host port path scheme
		case $1:$scheme in
		kube-apiserver:*) ask "$K/admin.conf" --server="https://$host:$port" get --raw "$path" ;;
		# Its certificate is self-signed. Without credentials kubectl would prompt for a user name.
		*:https) ask "$K/admin.conf" --server="https://$host:$port" --insecure-skip-tls-verify get --raw "$path" ;;
		*) ask /dev/null --server="http://$host:$port" get --raw "$path" ;;
		esac
	} >/dev/null
}

# others_ready: reports whether the other masters' control planes are ready, each with its etcd.
others_ready() {
	why="the API does not say which other masters there are"
	others=$(ask "$K/admin.conf" get nodes -l node-role.kubernetes.io/control-plane -o \
		'go-template={{range .items}}{{$n := .metadata.name}}{{range .status.addresses}}{{if eq .type "InternalIP"}}{{$n}} {{.address}}{{"\n"}}{{end}}{{end}}{{end}}') || return 1
	read -r self port _ <<DATA
$(probe kube-apiserver)
DATA
	while read -r node address; do
		[ -n "$address" ] && [ "$address" != "$self" ] || continue
		why="the control plane of $node is not ready"
		ask "$K/admin.conf" --server="https://$address:$port" get --raw /readyz >/dev/null || return 1
	done <<DATA
$others
DATA
}

# running COMPONENT: prints its containers, one per line.
running() {
	tasks=$(ctr -n k8s.io tasks ls 2>/dev/null | awk '$3 == "RUNNING" { print $1 }')
	ctr -n k8s.io containers ls -q "labels.\"io.kubernetes.container.name\"==$1,labels.\"io.kubernetes.pod.namespace\"==kube-system" 2>/dev/null |
		grep -Fx -e "$tasks" || true
}

# restart COMPONENT: ends its container, which the kubelet starts again, and waits until the
# new one is healthy. The kubelet waits up to five minutes if it had to do so shortly
# before; the limit is a minute longer.
restart() {
	i=0
	until systemctl is-active --quiet kubelet.service; do
		i=$((i + 1))
		[ "$i" -lt 30 ] || { complain "the kubelet does not run, so $1 was not restarted -> journalctl -u kubelet, then systemctl start paictl-certificates.service" && return 0; }
		sleep 2
	done
	ctr -n k8s.io tasks ls >/dev/null 2>&1 || { complain "containerd does not answer, so $1 was not restarted -> journalctl -u containerd" && return 0; }
	old=$(running "$1")
	for id in $old; do ctr -n k8s.io tasks kill -s SIGTERM "$id" >/dev/null 2>&1 || true; done
	i=0
	until new=$(running "$1") && [ -n "$new" ] && [ "$new" != "$old" ] && healthy "$1"; do
		i=$((i + 1))
		[ "$i" -lt 180 ] || { complain "$1 is not healthy six minutes after its restart with new certificates -> its log is in /var/log/pods" && return 0; }
		sleep 2
	done
	rm -f "$W/due/$1"
	echo "restarted $1"
}

# restart_due: restarts etcd first, since the API server needs it. If a component doesn't come
# back, the others aren't restarted.
restart_due() {
	for c in etcd kube-apiserver kube-controller-manager kube-scheduler; do
		[ -f "$W/due/$c" ] || continue
		if [ ! -f "$K/manifests/$c.yaml" ]; then
			rm -f "$W/due/$c"
			continue
		fi
		if [ "$(expiry "$c")" -ge $((now + 7 * DAY)) ] && ! others_ready; then
			echo "$c is restarted with its new certificates on another day, since $why" >&2
			return 0
		fi
		restart "$c"
		[ ! -f "$W/due/$c" ] || return 0
	done
}

c_restore
admin_conf
kubelet_certificate
if [ "$mode" = boot ] && runs; then exit "$failed"; fi
renew_all
if runs; then
	restart_due
else
	rm -f "$W"/due/*
fi
exit "$failed"
