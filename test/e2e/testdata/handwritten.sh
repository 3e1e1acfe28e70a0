#!/bin/sh
# What a competent operator would write by hand to get the same cluster from the same bundle:
# all hosts in parallel, one archive each, the same kubeadm, containerd and import commands.
# The benchmark compares "paictl cluster up" with it. It is not idempotent, checks nothing,
# keeps no record and cannot be taken back: that part comes on top with paictl.
#
#   handwritten.sh BUNDLE KEY KNOWN_HOSTS FIRST WORKER...     (addresses)
set -eu
bundle=$1 key=$2 known=$3
shift 3
first=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

on() {
	h=$1
	shift
	ssh -i "$key" -o UserKnownHostsFile="$known" -o ControlMaster=auto -o ControlPath="$work/%h" -o ControlPersist=60 "root@$h" "$@"
}

image() { awk -v n="$1" '$2 == "name:" && $3 == n { hit = 1 } hit && $1 == "image:" { print $2; exit }' "$bundle/manifest.yaml"; }
pause=$(image pause)
tag() { image "$1" | sed 's/.*://'; }

cat >"$work/config.toml" <<EOF
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '$pause'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
EOF

cat >"$work/kubeadm.yaml" <<EOF
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: $first}
nodeRegistration: {criSocket: "unix:///run/containerd/containerd.sock"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: $(tag kube-apiserver)
networking: {podSubnet: 10.144.0.0/16, serviceSubnet: 10.96.0.0/16}
etcd: {local: {imageTag: $(tag etcd)}}
dns: {imageTag: $(tag coredns)}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
failSwapOn: false
localStorageCapacityIsolation: false
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
conntrack: {maxPerCore: 0}
EOF

prepare() {
	h=$1 images=$2
	# shellcheck disable=SC2086 # a list of names
	tar -C "$bundle" -cf - bin cni $images | on "$h" 'mkdir -p /root/bundle && tar -C /root/bundle -xf -'
	on "$h" 'mkdir -p /etc/containerd && cat >/etc/containerd/config.toml' <"$work/config.toml"
	on "$h" sh -s <<'EOF'
set -eu
cd /root/bundle
for b in containerd containerd-shim-runc-v2 ctr runc kubelet kubeadm kubectl; do install -m 755 "bin/$b" /usr/local/bin/; done
mkdir -p /opt/cni/bin /etc/systemd/system
install -m 755 cni/* /opt/cni/bin/
cat >/etc/systemd/system/containerd.service <<'UNIT'
[Service]
Type=notify
ExecStart=/usr/local/bin/containerd
Delegate=yes
KillMode=process
[Install]
WantedBy=multi-user.target
UNIT
cat >/etc/systemd/system/kubelet.service <<'UNIT'
[Unit]
ConditionPathExists=/var/lib/kubelet/config.yaml
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/local/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS
Restart=always
[Install]
WantedBy=multi-user.target
UNIT
printf 'net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\n' >/etc/sysctl.d/90-k8s.conf
sysctl -q -p /etc/sysctl.d/90-k8s.conf
systemctl daemon-reload
systemctl enable -q --now containerd
systemctl enable -q kubelet
pids=
for i in images/*; do
	ctr -n k8s.io images import "$i" >/dev/null &
	pids="$pids $!"
done
for p in $pids; do wait "$p"; done
EOF
}

node_images=$(awk '$2 == "name:" { n = $3 } $1 == "kind:" { k = $2 } $1 == "path:" && k == "image" && n !~ /^(kube-apiserver|kube-controller-manager|kube-scheduler|etcd)$/ { print $2 }' "$bundle/manifest.yaml")
all_images=$(awk '$2 == "name:" { n = $3 } $1 == "kind:" { k = $2 } $1 == "path:" && k == "image" { print $2 }' "$bundle/manifest.yaml")

pids=
for h; do
	if [ "$h" = "$first" ]; then images=$all_images; else images=$node_images; fi
	prepare "$h" "$images" &
	pids="$pids $!"
done
for p in $pids; do wait "$p"; done

on "$first" 'cat >/root/kubeadm.yaml' <"$work/kubeadm.yaml"
on "$first" kubeadm init --config /root/kubeadm.yaml --ignore-preflight-errors=SystemVerification,Swap >/dev/null
flannel=$(image flannel)
on "$first" env KUBECONFIG=/etc/kubernetes/admin.conf kubectl apply -f - >/dev/null <<EOF
apiVersion: v1
kind: ServiceAccount
metadata: {name: flannel, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: flannel}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: flannel, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: flannel, namespace: kube-system}
data:
  net-conf.json: '{"Network": "10.144.0.0/16", "EnableNFTables": true, "Backend": {"Type": "vxlan", "DirectRouting": true}}'
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: flannel, namespace: kube-system}
spec:
  selector: {matchLabels: {app: flannel}}
  template:
    metadata: {labels: {app: flannel}}
    spec:
      hostNetwork: true
      serviceAccountName: flannel
      tolerations: [{operator: Exists}]
      containers:
        - name: flannel
          image: $flannel
          command: [/opt/bin/flanneld, --ip-masq, --kube-subnet-mgr]
          env:
            - {name: KUBERNETES_SERVICE_HOST, value: "$first"}
            - {name: KUBERNETES_SERVICE_PORT, value: "6443"}
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
          securityContext: {capabilities: {add: [NET_ADMIN, NET_RAW]}}
          volumeMounts: [{name: run, mountPath: /run/flannel}, {name: conf, mountPath: /etc/kube-flannel}]
      volumes:
        - {name: run, hostPath: {path: /run/flannel, type: DirectoryOrCreate}}
        - {name: conf, configMap: {name: flannel}}
EOF
join=$(on "$first" kubeadm token create --print-join-command)

finish() {
	h=$1
	if [ "$h" != "$first" ]; then
		on "$h" "$join --ignore-preflight-errors=SystemVerification,Swap" >/dev/null
	fi
	on "$h" sh -s <<'EOF'
until [ -s /run/flannel/subnet.env ]; do sleep 0.2; done
. /run/flannel/subnet.env
a=${FLANNEL_SUBNET%/*}
mkdir -p /etc/cni/net.d
cat >/etc/cni/net.d/10-flannel.conflist <<CNI
{"cniVersion": "1.0.0", "name": "flannel", "plugins": [{"type": "bridge", "bridge": "cni0", "mtu": $FLANNEL_MTU, "isDefaultGateway": true, "hairpinMode": true,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "${a%.*}.0/24"}]], "routes": [{"dst": "$FLANNEL_NETWORK"}]}}, {"type": "portmap", "capabilities": {"portMappings": true}}]}
CNI
EOF
}
pids=
for h; do
	finish "$h" &
	pids="$pids $!"
done
for p in $pids; do wait "$p"; done
on "$first" env KUBECONFIG=/etc/kubernetes/admin.conf kubectl wait --for=condition=Ready nodes --all --timeout=180s >/dev/null
n=$#
on "$first" sh -c "'until [ \$(KUBECONFIG=/etc/kubernetes/admin.conf kubectl get nodes --no-headers | grep -c \" Ready \") = $n ]; do sleep 0.2; done'"
