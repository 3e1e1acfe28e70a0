package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

// goodFiles returns the texts of four files without any finding.
func goodFiles() map[string]string {
	return map[string]string{
		LayoutFile: `apiVersion: paictl.openpai.org/v1
kind: Layout
ssh: {username: pai, password: x}
machine-sku:
  gpu: {mem: 503Gi, cpu: {vcore: 64}, gpu: {type: NVIDIA-A100-SXM4-80GB, count: 8}, os: ubuntu22.04, arch: amd64, discovered: true}
machine-list:
  - {hostname: m1, hostip: 10.0.0.1, machine-type: gpu, roles: [master]}
  - {hostname: w1, hostip: 10.0.0.2, machine-type: gpu, roles: [worker]}
`,
		KubernetesFile: `kubernetes:
  cluster-dns: [10.0.0.53]
  service-cluster-ip-range: 10.254.0.0/16
  pod-cidr: 10.244.0.0/16
`,
		RolesFile: `k8s-role:
  master:
    component-list: [etcd, apiserver, controller-manager, scheduler]
    taints: ["node-role.kubernetes.io/control-plane:NoSchedule"]
  worker: {workloads: true, labels: {pai-worker: "true"}}
`,
		ServicesFile: `cluster:
  common: {cluster-id: pai}
rest-server: {server-port: 9186}
`,
	}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, dir, name, text)
	}
	return dir
}

func TestGoodFilesHaveNoFindings(t *testing.T) {
	findings, err := ValidateDir(folder(t, goodFiles()))
	require.NoError(t, err)
	assert.Empty(t, findings)
}

// edit replaces a text in one of the good files.
type edit struct{ file, old, new string }

func TestEveryRuleNamesPlaceAndRemedy(t *testing.T) {
	const l, k, r, s = LayoutFile, KubernetesFile, RolesFile, ServicesFile
	addMachine := func(fields string) edit {
		return edit{l, "  - {hostname: w1", "  - {" + fields + "}\n  - {hostname: w1"}
	}
	kube := func(line string) edit { return edit{k, "kubernetes:\n", "kubernetes:\n  " + line + "\n"} }
	for name, c := range map[string]struct {
		edit
		want string // LINE:COLUMN: FIELD [rule]
	}{
		"duplicate hostname":       {addMachine("hostname: m1, hostip: 10.0.0.3, machine-type: gpu, roles: [worker]"), "8:16: machine-list[1].hostname [layout/duplicate-hostname]"},
		"duplicate address":        {addMachine("hostname: x, hostip: 10.0.0.1, machine-type: gpu, roles: [worker]"), "8:27: machine-list[1].hostip [layout/duplicate-hostip]"},
		"no hostname":              {edit{l, "hostname: w1, ", ""}, "8:5: machine-list[1].hostname [layout/hostname]"},
		"hostname with capitals":   {edit{l, "hostname: w1", "hostname: W1"}, "8:16: machine-list[1].hostname [layout/hostname]"},
		"hostname with underscore": {edit{l, "hostname: w1", "hostname: w_1"}, "8:16: machine-list[1].hostname [layout/hostname]"},
		"no address":               {edit{l, "hostip: 10.0.0.2, ", ""}, "8:5: machine-list[1].hostip [layout/hostip]"},
		"not an address":           {edit{l, "hostip: 10.0.0.2", "hostip: 999.0.0.2"}, "8:28: machine-list[1].hostip [layout/hostip]"},
		"unknown SKU":              {edit{l, "machine-type: gpu, roles: [worker]", "machine-type: gpus, roles: [worker]"}, "8:52: machine-list[1].machine-type [layout/unknown-sku]"},
		"no SKU":                   {edit{l, "machine-type: gpu, roles: [worker]", "roles: [worker]"}, "8:5: machine-list[1].machine-type [layout/unknown-sku]"},
		"unknown role":             {edit{l, "roles: [worker]", "roles: [wroker]"}, "8:65: machine-list[1].roles[0] [layout/unknown-role]"},
		"no role":                  {edit{l, "roles: [worker]", "roles: []"}, "8:64: machine-list[1].roles [layout/no-roles]"},
		"role twice":               {edit{l, "roles: [worker]", "roles: [worker, worker]"}, "8:73: machine-list[1].roles[1] [layout/duplicate-role]"},
		"bad label":                {edit{l, "roles: [worker]", "roles: [worker], labels: {'a b': c}"}, "8:90: machine-list[1].labels[\"a b\"] [layout/label]"},
		"bad label value":          {edit{l, "roles: [worker]", "roles: [worker], labels: {a: 'b c'}"}, "8:86: machine-list[1].labels.a [layout/label]"},
		"bad taint":                {edit{l, "roles: [worker]", "roles: [worker], taints: ['a=b:No']"}, "8:83: machine-list[1].taints[0] [layout/taint]"},
		"GPU that isn't there":     {edit{l, "roles: [worker]", "roles: [worker], gpus-for-pods: [7, 8]"}, "8:93: machine-list[1].gpus-for-pods[1] [layout/gpus-for-pods]"},
		"GPU below zero":           {edit{l, "roles: [worker]", "roles: [worker], gpus-for-pods: [-1]"}, "8:90: machine-list[1].gpus-for-pods[0] [layout/gpus-for-pods]"},
		"GPU twice":                {edit{l, "roles: [worker]", "roles: [worker], gpus-for-pods: [7, 7]"}, "8:93: machine-list[1].gpus-for-pods[1] [layout/gpus-for-pods]"},
		"bad port":                 {edit{l, "roles: [worker]", "roles: [worker], ssh: {port: 0}"}, "8:86: machine-list[1].ssh.port [layout/ssh-port]"},
		"bad jump host":            {edit{l, "password: x", "jump-host: ','"}, "3:33: ssh.jump-host [layout/ssh-jump-host]"},
		"bad user":                 {edit{l, "username: pai", "username: 'a b'"}, "3:17: ssh.username [layout/ssh-username]"},
		"invisible user":           {edit{l, "username: pai", "username: \"p\\u200bai\""}, "3:17: ssh.username [layout/ssh-username]"},
		"user in quotes of a page": {edit{l, "username: pai", "username: “pai”"}, "3:17: ssh.username [layout/ssh-username]"},
		"jump host with password":  {edit{l, "password: x", "jump-host: 'u:pw@h'"}, "3:33: ssh.jump-host [layout/ssh-jump-host]"},
		"masked password":          {edit{l, "password: x", "password: '********'"}, "3:32: ssh.password [file/masked]"},
		"taint twice":              {edit{l, "roles: [worker]", "roles: [worker], taints: ['a=b:NoSchedule', 'a=c:NoSchedule']"}, "8:101: machine-list[1].taints[1] [layout/taint]"},
		"label of Kubernetes":      {edit{l, "roles: [worker]", "roles: [worker], labels: {kubernetes.io/hostname: foo}"}, "8:107: machine-list[1].labels[\"kubernetes.io/hostname\"] [layout/label]"},
		"label against the role":   {edit{l, "roles: [worker]", "roles: [worker], labels: {pai-worker: 'false'}"}, "8:95: machine-list[1].labels.pai-worker [layout/label]"},
		"name of each machine":     {edit{l, "hostname: w1", "hostname: localhost"}, "8:16: machine-list[1].hostname [layout/hostname]"},
		"name of another machine":  {edit{l, "hostname: w1", "hostname: 10.0.0.1"}, "8:16: machine-list[1].hostname [layout/hostname]"},
		"secret without key":       {edit{l, "password: x", "secret-name: s"}, "3:35: ssh.secret-name [layout/ssh-secret-name]"},
		"bad secret name":          {edit{l, "password: x", "keyfile-path: /dev/null, secret-name: A_b"}, "3:60: ssh.secret-name [layout/ssh-secret-name]"},
		"key that is not there":    {edit{l, "password: x", "keyfile-path: nowhere"}, "3:36: ssh.keyfile-path [layout/no-file]"},
		"no machines":              {edit{l, "machine-list:\n", "machine-list: []\nx:\n"}, "yaml/unknown-key"},
		"no master":                {edit{l, "roles: [master]", "roles: [worker]"}, "7:3: machine-list [layout/no-master]"},
		"even masters":             {edit{l, "roles: [worker]", "roles: [master, worker]"}, "layout/even-masters"},
		"no worker":                {edit{l, "  - {hostname: w1, hostip: 10.0.0.2, machine-type: gpu, roles: [worker]}\n", ""}, "7:3: machine-list [layout/no-worker]"},
		"two vendors":              {edit{l, "machine-list:", "  amd: {mem: 1Gi, cpu: {vcore: 1}, gpu: {type: AMD-Instinct-MI300X, count: 8}, os: x}\nmachine-list:\n  - {hostname: a1, hostip: 10.0.0.9, machine-type: amd, roles: [worker]}"}, "8:3: machine-list [layout/gpu-vendors]"},
		"unused SKU":               {edit{l, "machine-list:", "  old: {mem: 1Gi, cpu: {vcore: 1}, os: x}\nmachine-list:"}, "6:8: machine-sku.old [sku/unused]"},
		"not discovered":           {edit{l, "mem: 503Gi, cpu: {vcore: 64}", "discovered: false, cpu: {vcore: 64}"}, "yaml/duplicate-key"},
		"bad memory":               {edit{l, "mem: 503Gi", "mem: 503 GB"}, "5:14: machine-sku.gpu.mem [sku/mem]"},
		"no memory":                {edit{l, "mem: 503Gi, ", ""}, "5:8: machine-sku.gpu.mem [sku/mem]"},
		"no processors":            {edit{l, "vcore: 64", "vcore: 0"}, "5:34: machine-sku.gpu.cpu.vcore [sku/vcore]"},
		"negative GPUs":            {edit{l, "count: 8", "count: -1"}, "5:81: machine-sku.gpu.gpu.count [sku/gpu-count]"},
		"GPU model of two words":   {edit{l, "type: NVIDIA-A100-SXM4-80GB", "type: NVIDIA A100"}, "5:51: machine-sku.gpu.gpu.type [sku/gpu-type]"},
		"no system":                {edit{l, "os: ubuntu22.04, ", ""}, "5:8: machine-sku.gpu.os [sku/os]"},
		"odd architecture":         {edit{l, "arch: amd64", "arch: x86_64"}, "5:108: machine-sku.gpu.arch [sku/arch]"},
		"disk without size":        {edit{l, "arch: amd64", "disks: [{name: sda}]"}, "5:110: machine-sku.gpu.disks[0].size [sku/disk-size]"},
		"API version":              {edit{l, "paictl.openpai.org/v1", "paictl.openpai.org/v9"}, "1:13: apiVersion [file/api-version]"},
		"kind":                     {edit{l, "kind: Layout", "kind: Deployment"}, "2:7: kind [file/kind]"},

		"old version":            {kube("version: v1.16.15"), "2:12: kubernetes.version [kubernetes/version]"},
		"no version":             {kube("version: latest"), "2:12: kubernetes.version [kubernetes/version]"},
		"cluster name":           {kube("cluster-name: A"), "2:17: kubernetes.cluster-name [kubernetes/cluster-name]"},
		"domain":                 {kube("dns-domain: a_b"), "2:15: kubernetes.dns-domain [kubernetes/dns-domain]"},
		"stub as DNS":            {edit{k, "[10.0.0.53]", "[127.0.0.53]"}, "2:17: kubernetes.cluster-dns[0] [kubernetes/cluster-dns]"},
		"more DNS than pods use": {edit{k, "[10.0.0.53]", "[10.0.0.53, 10.0.0.54, 10.0.0.55, 10.0.0.56, 10.0.0.57]"}, "2:50: kubernetes.cluster-dns[3] [kubernetes/many-dns]"},
		"no DNS":                 {edit{k, "[10.0.0.53]", "[]"}, "2:16: kubernetes.cluster-dns [kubernetes/no-dns]"},
		"etcd's folder":          {kube("etcd-data-path: etcd"), "2:19: kubernetes.etcd-data-path [kubernetes/etcd-data-path]"},
		"etcd in /etc":           {kube("etcd-data-path: /etc"), "2:19: kubernetes.etcd-data-path [kubernetes/etcd-data-path]"},
		"etcd below /proc":       {kube("etcd-data-path: /proc/etcd"), "2:19: kubernetes.etcd-data-path [kubernetes/etcd-data-path]"},
		"etcd in kubelet's":      {kube("etcd-data-path: /var/lib/kubelet/"), "2:19: kubernetes.etcd-data-path [kubernetes/etcd-data-path]"},
		"etcd above /etc":        {kube("etcd-data-path: /var/lib/../../etc"), "2:19: kubernetes.etcd-data-path [kubernetes/etcd-data-path]"},
		"etcd in two lines":      {kube("etcd-data-path: \"/a\\nb\""), "2:19: kubernetes.etcd-data-path [kubernetes/etcd-data-path]"},
		"etcd in the services'":  {kube("etcd-data-path: /datastorage"), "2:19: kubernetes.etcd-data-path [kubernetes/etcd-data-path]"},
		"registry with scheme":   {kube("docker-registry: https://x"), "2:20: kubernetes.docker-registry [kubernetes/docker-registry]"},
		"metadata address":       {kube("metadata-address: no"), "2:21: kubernetes.metadata-address [kubernetes/metadata-address]"},
		"driver policy":          {kube("gpu-driver: {policy: always}"), "2:24: kubernetes.gpu-driver.policy [kubernetes/gpu-driver]"},
		"driver version":         {kube("gpu-driver: {policy: install, version: latest}"), "2:42: kubernetes.gpu-driver.version [kubernetes/gpu-driver]"},
		"driver module":          {kube("gpu-driver: {policy: install, module: dkms}"), "2:41: kubernetes.gpu-driver.module [kubernetes/gpu-driver]"},
		"driver source":          {kube("gpu-driver: {policy: install, source: runfile}"), "2:41: kubernetes.gpu-driver.source [kubernetes/gpu-driver]"},
		"module without install": {kube("gpu-driver: {module: open}"), "2:24: kubernetes.gpu-driver.module [kubernetes/gpu-driver]"},
		"version without driver": {kube("gpu-driver: {policy: none, version: '535'}"), "2:39: kubernetes.gpu-driver.version [kubernetes/gpu-driver]"},
		"network plugin":         {kube("network-plugin: calico"), "2:19: kubernetes.network-plugin [kubernetes/network-plugin]"},
		"bundle that is missing": {kube("bundle: nowhere"), "2:11: kubernetes.bundle [kubernetes/no-bundle]"},
		"port out of range":      {kube("api-servers-port: 70000"), "2:21: kubernetes.api-servers-port [kubernetes/api-servers-port]"},
		"kubelet's port":         {kube("api-servers-port: 10250"), "2:21: kubernetes.api-servers-port [kubernetes/reserved-port]"},
		"a node port":            {kube("api-servers-port: 30443"), "2:21: kubernetes.api-servers-port [kubernetes/reserved-port]"},
		"API at a worker":        {kube("load-balance-ip: 10.0.0.2"), "2:20: kubernetes.load-balance-ip [kubernetes/load-balance-ip]"},
		"API at a name":          {kube("load-balance-ip: api.example.org"), "2:20: kubernetes.load-balance-ip [kubernetes/load-balance-ip]"},
		"certificate name":       {kube("api-server-cert-sans: ['a b']"), "2:26: kubernetes.api-server-cert-sans[0] [kubernetes/cert-san]"},
		"ranges overlap":         {edit{k, "10.244.0.0/16", "10.254.128.0/17"}, "4:13: kubernetes.pod-cidr [network/overlap]"},
		"not a range":            {edit{k, "10.244.0.0/16", "10.244.0.0"}, "4:13: kubernetes.pod-cidr [network/cidr]"},
		"range with host bits":   {edit{k, "10.244.0.0/16", "10.244.0.1/16"}, "4:13: kubernetes.pod-cidr [network/cidr]"},
		"IPv6 range":             {edit{k, "10.244.0.0/16", "fd00::/64"}, "4:13: kubernetes.pod-cidr [network/cidr]"},
		"pods on the machines":   {edit{k, "[10.0.0.53]\n  service-cluster-ip-range: 10.254.0.0/16\n  pod-cidr: 10.244.0.0/16", "[9.9.9.9]\n  pod-cidr: 10.0.0.0/16"}, "3:13: kubernetes.pod-cidr [network/overlaps-machine]"},
		"services on DNS":        {edit{k, "10.254.0.0/16", "10.0.0.48/28"}, "3:29: kubernetes.service-cluster-ip-range [network/overlaps-dns]"},
		"too few pod addresses":  {edit{k, "10.244.0.0/16", "10.244.0.0/24"}, "4:13: kubernetes.pod-cidr [network/pod-range-size]"},
		"too many services":      {edit{k, "10.254.0.0/16", "10.64.0.0/10"}, "3:29: kubernetes.service-cluster-ip-range [network/service-range-size]"},
		"a reserved range":       {edit{k, "10.244.0.0/16", "169.254.0.0/16"}, "4:13: kubernetes.pod-cidr [network/special-range]"},
		"kernel setting":         {kube("extra: {sysctl: {'a b': 1}}"), "2:27: kubernetes.extra.sysctl[\"a b\"] [extra/sysctl]"},
		"a setting of ours":      {kube("extra: {kubelet: {kind: x}}"), "2:27: kubernetes.extra.kubelet.kind [extra/owned]"},

		"a kubelet field misspelt":    {kube("extra: {kubelet: {cgroupDrive: systemd}}"), "2:34: kubernetes.extra.kubelet.cgroupDrive [extra/unknown-key]"},
		"a kubelet field of text":     {kube("extra: {kubelet: {maxPods: many}}"), "2:30: kubernetes.extra.kubelet.maxPods [extra/type]"},
		"a kubelet number in quotes":  {kube("extra: {kubelet: {maxPods: '200'}}"), "2:30: kubernetes.extra.kubelet.maxPods [extra/type]"},
		"a number out of range":       {kube("extra: {kubelet: {maxPods: 99999999999}}"), "extra/value"},
		"a kubelet map":               {kube("extra: {kubelet: {authentication: true}}"), "2:37: kubernetes.extra.kubelet.authentication [extra/type]"},
		"a kubelet list":              {kube("extra: {kubelet: {allowedUnsafeSysctls: net.a}}"), "2:43: kubernetes.extra.kubelet.allowedUnsafeSysctls [extra/type]"},
		"a duration":                  {kube("extra: {kubelet: {shutdownGracePeriod: 30}}"), "2:42: kubernetes.extra.kubelet.shutdownGracePeriod [extra/value]"},
		"a duration without its unit": {kube("extra: {kubelet: {shutdownGracePeriod: '30'}}"), "2:42: kubernetes.extra.kubelet.shutdownGracePeriod [extra/value]"},
		"a word":                      {kube("extra: {kubelet: {cgroupDriver: systemD}}"), "2:35: kubernetes.extra.kubelet.cgroupDriver [extra/value]"},
		"a quantity":                  {kube("extra: {kubelet: {logging: {options: {json: {infoBufferSize: x y}}}}}"), "2:64: kubernetes.extra.kubelet.logging.options.json.infoBufferSize [extra/value]"},
		"a threshold":                 {kube("extra: {kubelet: {evictionHard: {memory.available: some}}}"), "2:54: kubernetes.extra.kubelet.evictionHard[\"memory.available\"] [extra/value]"},
		"a signal":                    {kube("extra: {kubelet: {evictionHard: {memory: 5%}}}"), "2:44: kubernetes.extra.kubelet.evictionHard.memory [extra/unknown-key]"},
		"a reservation":               {kube("extra: {kubelet: {systemReserved: {cpu: 1}}}"), "2:43: kubernetes.extra.kubelet.systemReserved.cpu [extra/type]"},
		"a field deep down":           {kube("extra: {kubelet: {authentication: {x509: {clientCAFiles: /x}}}}"), "2:60: kubernetes.extra.kubelet.authentication.x509.clientCAFiles [extra/unknown-key]"},
		"more pods than addresses":    {kube("extra: {kubelet: {maxPods: 300}}"), "2:30: kubernetes.extra.kubelet.maxPods [extra/value]"},
		"unverifiable kubelet":        {kube("extra: {kubelet: {serverTLSBootstrap: false}}"), "2:41: kubernetes.extra.kubelet.serverTLSBootstrap [extra/owned]"},
		"anonymous kubelet":           {kube("extra: {kubelet: {authentication: {anonymous: {enabled: true}}}}"), "2:59: kubernetes.extra.kubelet.authentication.anonymous.enabled [extra/owned]"},
		"static pods":                 {kube("extra: {kubelet: {staticPodPath: /x}}"), "2:36: kubernetes.extra.kubelet.staticPodPath [extra/owned]"},
		"resolver":                    {kube("extra: {kubelet: {resolvConf: /x}}"), "2:33: kubernetes.extra.kubelet.resolvConf [extra/owned]"},
		"read-only port":              {kube("extra: {kubelet: {readOnlyPort: 10255}}"), "2:35: kubernetes.extra.kubelet.readOnlyPort [extra/owned]"},
		"kubelet on etcd's port":      {kube("extra: {kubelet: {port: 2379}}"), "2:27: kubernetes.extra.kubelet.port [extra/port]"},
		"kubelet on its own port":     {kube("extra: {kubelet: {healthzPort: 10250}}"), "2:34: kubernetes.extra.kubelet.healthzPort [extra/port]"},
		"kubelet on the API's port":   {kube("extra: {kubelet: {port: 6443}}"), "2:27: kubernetes.extra.kubelet.port [extra/port]"},
		"kubelet on a node port":      {kube("extra: {kubelet: {port: 31000}}"), "2:27: kubernetes.extra.kubelet.port [extra/port]"},
		"kubelet without a port":      {kube("extra: {kubelet: {port: 0}}"), "2:27: kubernetes.extra.kubelet.port [extra/value]"},
		"kube-proxy's field":          {kube("extra: {kube-proxy: {mod: ipvs}}"), "2:29: kubernetes.extra.kube-proxy.mod [extra/unknown-key]"},
		"kube-proxy's mode":           {kube("extra: {kube-proxy: {mode: ebpf}}"), "2:30: kubernetes.extra.kube-proxy.mode [extra/value]"},
		"kube-proxy's range":          {kube("extra: {kube-proxy: {clusterCIDR: 10.1.0.0/16}}"), "2:37: kubernetes.extra.kube-proxy.clusterCIDR [extra/owned]"},
		"kube-proxy on kubelet's":     {kube("extra: {kube-proxy: {metricsBindAddress: '0.0.0.0:10250'}}"), "2:44: kubernetes.extra.kube-proxy.metricsBindAddress [extra/port]"},
		"kube-proxy's address":        {kube("extra: {kube-proxy: {healthzBindAddress: '10256'}}"), "2:44: kubernetes.extra.kube-proxy.healthzBindAddress [extra/value]"},
		"kubeadm's field":             {kube("extra: {kubeadm: {apiserver: {certSANs: [a]}}}"), "2:32: kubernetes.extra.kubeadm.apiserver [extra/unknown-key]"},
		"kubeadm's old arguments":     {kube("extra: {kubeadm: {apiServer: {extraArgs: {v: '4'}}}}"), "2:44: kubernetes.extra.kubeadm.apiServer.extraArgs [extra/type]"},
		"an argument's number":        {kube("extra: {kubeadm: {scheduler: {extraArgs: [{name: v, value: 4}]}}}"), "2:62: kubernetes.extra.kubeadm.scheduler.extraArgs[0].value [extra/type]"},
		"an argument's dashes":        {kube("extra: {kubeadm: {apiServer: {extraArgs: [{name: --v, value: '4'}]}}}"), "2:52: kubernetes.extra.kubeadm.apiServer.extraArgs[0].name [extra/value]"},
		"an argument of ours":         {kube("extra: {kubeadm: {apiServer: {extraArgs: [{name: secure-port, value: '1'}]}}}"), "2:45: kubernetes.extra.kubeadm.apiServer.extraArgs[0] [extra/owned]"},
		"no anonymous health":         {kube("extra: {kubeadm: {apiServer: {extraArgs: [{name: anonymous-auth, value: 'false'}]}}}"), "2:45: kubernetes.extra.kubeadm.apiServer.extraArgs[0] [extra/owned]"},
		"an argument without a name":  {kube("extra: {kubeadm: {apiServer: {extraArgs: [{value: '4'}]}}}"), "2:45: kubernetes.extra.kubeadm.apiServer.extraArgs[0] [extra/value]"},
		"a volume of ours":            {kube("extra: {kubeadm: {apiServer: {extraVolumes: [{name: paictl, hostPath: /a, mountPath: /a}]}}}"), "2:48: kubernetes.extra.kubeadm.apiServer.extraVolumes[0] [extra/owned]"},
		"manifest that is missing":    {kube("network-plugin: calico.yaml"), "2:19: kubernetes.network-plugin [kubernetes/network-plugin]"},
		"another etcd":                {kube("extra: {kubeadm: {etcd: {external: {endpoints: ['https://x:2379']}}}}"), "2:38: kubernetes.extra.kubeadm.etcd.external [extra/owned]"},
		"two folders for etcd":        {kube("extra: {kubeadm: {etcd: {local: {dataDir: /x}}}}"), "2:45: kubernetes.extra.kubeadm.etcd.local.dataDir [extra/owned]"},
		"etcd's folder as a flag":     {kube("extra: {kubeadm: {etcd: {local: {extraArgs: [{name: data-dir, value: /x}]}}}}"), "2:48: kubernetes.extra.kubeadm.etcd.local.extraArgs[0] [extra/owned]"},
		"certificates elsewhere":      {kube("extra: {kubeadm: {certificatesDir: /x}}"), "2:38: kubernetes.extra.kubeadm.certificatesDir [extra/owned]"},

		"proxy of another kind":   {kube("proxy: {https: 'socks5://10.0.0.9:1080'}"), "2:18: kubernetes.proxy.https [kubernetes/proxy]"},
		"proxy without a scheme":  {kube("proxy: {https: '10.0.0.9:3128'}"), "2:18: kubernetes.proxy.https [kubernetes/proxy]"},
		"proxy with a path":       {kube("proxy: {https: 'http://10.0.0.9:3128/x'}"), "2:18: kubernetes.proxy.https [kubernetes/proxy]"},
		"proxy with a line break": {kube("proxy: {https: \"http://10.0.0.9:3128\\nA=b\"}"), "2:18: kubernetes.proxy.https [kubernetes/proxy]"},
		"proxy on no port":        {kube("proxy: {https: 'http://10.0.0.9:99999'}"), "2:18: kubernetes.proxy.https [kubernetes/proxy]"},
		"proxy for http alone":    {kube("proxy: {http: 'http://10.0.0.9:3128'}"), "2:17: kubernetes.proxy.http [kubernetes/proxy]"},
		"nothing to go around":    {kube("proxy: {no-proxy: [a]}"), "2:21: kubernetes.proxy.no-proxy [kubernetes/no-proxy]"},
		"around a list in one":    {kube("proxy: {https: 'http://10.0.0.9:3128', no-proxy: ['a,b']}"), "2:53: kubernetes.proxy.no-proxy[0] [kubernetes/no-proxy]"},
		"around a URL":            {kube("proxy: {https: 'http://10.0.0.9:3128', no-proxy: ['http://a']}"), "2:53: kubernetes.proxy.no-proxy[0] [kubernetes/no-proxy]"},

		"partial control plane": {edit{r, "etcd, apiserver", "apiserver"}, "3:21: k8s-role.master.component-list [role/partial-control-plane]"},
		"unknown component":     {edit{r, "etcd, apiserver", "etcd, haproxy, apiserver"}, "3:28: k8s-role.master.component-list[1] [role/unknown-component]"},
		"component twice":       {edit{r, "etcd, apiserver", "etcd, etcd, apiserver"}, "3:28: k8s-role.master.component-list[1] [role/duplicate-component]"},
		"role name":             {edit{r, "  worker:", "  Big_one: {workloads: true}\n  worker:"}, "5:12: k8s-role.Big_one [role/name]"},
		"idle role":             {edit{r, "  worker:", "  idle: {}\n  worker:"}, "5:9: k8s-role.idle [role/idle]"},
		"label of a role":       {edit{r, "pai-worker:", "-x:"}, "5:42: k8s-role.worker.labels.-x [layout/label]"},

		"cluster id":        {edit{s, "cluster-id: pai", "cluster-id: p/i"}, "2:24: cluster.common.cluster-id [services/cluster-id]"},
		"data path":         {edit{s, "cluster-id: pai", "data-path: data"}, "2:23: cluster.common.data-path [services/data-path]"},
		"data in /var/lib":  {edit{s, "cluster-id: pai", "data-path: /var/lib"}, "2:23: cluster.common.data-path [services/data-path]"},
		"data in kubelet's": {edit{s, "cluster-id: pai", "data-path: /var/lib/kubelet/x"}, "2:23: cluster.common.data-path [services/data-path]"},
		"data above /a":     {edit{s, "cluster-id: pai", "data-path: /a/../etc"}, "2:23: cluster.common.data-path [services/data-path]"},
		"data in etcd's":    {edit{s, "cluster-id: pai", "data-path: /var/lib/etcd/x"}, "kubernetes/etcd-data-path"},
		"user, no password": {edit{s, "rest-server:", "  docker-registry: {username: u}\nrest-server:"}, "3:31: cluster.docker-registry.username [services/registry-login]"},
		"password, no user": {edit{s, "rest-server:", "  docker-registry: {password: u}\nrest-server:"}, "3:31: cluster.docker-registry.password [services/registry-login]"},
		"latest":            {edit{s, "rest-server:", "  docker-registry: {docker-tag: latest}\nrest-server:"}, "3:33: cluster.docker-registry.docker-tag [services/docker-tag]"},
		"tag":               {edit{s, "rest-server:", "  docker-registry: {docker-tag: a b}\nrest-server:"}, "3:33: cluster.docker-registry.docker-tag [services/docker-tag]"},
		"namespace":         {edit{s, "rest-server:", "  docker-registry: {namespace: A}\nrest-server:"}, "3:32: cluster.docker-registry.namespace [services/registry-namespace]"},
		"registry domain":   {edit{s, "rest-server:", "  docker-registry: {domain: http://a}\nrest-server:"}, "3:29: cluster.docker-registry.domain [services/registry-domain]"},
		"mirror":            {edit{s, "rest-server:", "  docker-registry: {mirror: https://a/b}\nrest-server:"}, "3:29: cluster.docker-registry.mirror [services/registry-mirror]"},
		"registry secret":   {edit{s, "rest-server:", "  docker-registry: {secret-name: A}\nrest-server:"}, "3:34: cluster.docker-registry.secret-name [services/registry-secret]"},
	} {
		t.Run(name, func(t *testing.T) {
			files := goodFiles()
			require.Contains(t, files[c.file], c.old, "the test's own edit")
			files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
			findings, err := ValidateDir(folder(t, files))
			require.NoError(t, err)
			require.NotEmpty(t, findings)
			var got []string
			for _, f := range findings {
				assert.NotEmpty(t, f.Message)
				got = append(got, short(f))
			}
			if !strings.Contains(c.want, " ") {
				assert.Contains(t, strings.Join(got, "\n"), "["+c.want+"]")
				return
			}
			assert.Contains(t, got, c.want)
			assert.Len(t, got, 1, "one mistake, one finding: %v", got)
			assert.NotEmpty(t, findings[0].Remedy)
		})
	}
}

func short(f Finding) string {
	return strings.Join([]string{position(f), " ", f.Field, " [", f.Rule, "]"}, "")
}

func position(f Finding) string {
	s := strings.TrimPrefix(f.String(), f.File+":")
	i := strings.Index(s, ": ")
	return s[:i+1]
}

func TestAllFindingsAreReportedAtOnceInOrder(t *testing.T) {
	files := goodFiles()
	files[LayoutFile] = strings.ReplaceAll(files[LayoutFile], "hostip: 10.0.0.2", "hostip: 10.0.0.1")
	files[LayoutFile] = strings.ReplaceAll(files[LayoutFile], "vcore: 64", "vcore: 0")
	files[KubernetesFile] += "  network-plugin: x\n"
	findings, err := ValidateDir(folder(t, files))
	require.NoError(t, err)
	var rules []string
	for _, f := range findings {
		rules = append(rules, f.Rule)
	}
	assert.Equal(t, []string{"sku/vcore", "layout/duplicate-hostip", "kubernetes/network-plugin"}, rules)
}

const twoMoreMasters = "  - {hostname: m2, hostip: 10.0.0.3, machine-type: gpu, roles: [master]}\n  - {hostname: m3, hostip: 10.0.0.4, machine-type: gpu, roles: [master]}\n"

func TestSeveralMastersBehindOneAddressAreWarnedAbout(t *testing.T) {
	good := goodFiles()[KubernetesFile]
	for written, rules := range map[string][]string{
		"":                                  nil,
		"load-balance-ip: 10.0.0.100":       nil,
		"load-balance-ip: 10.0.0.1":         nil, // as the defaults fill it in
		"api-endpoint: local":               nil,
		"api-endpoint: api.example.org":     nil,
		"api-endpoint: 10.0.0.100:443":      nil,
		"api-endpoint: 10.0.0.1":            {"kubernetes/no-load-balancer"},
		"api-endpoint: 10.0.0.2":            {"kubernetes/api-endpoint"}, // a worker
		"api-endpoint: 10.0.0.2:8443":       nil,                         // a load balancer on it
		"api-endpoint: 127.0.0.1:6443":      {"kubernetes/api-endpoint"},
		"api-endpoint: 10.0.0.100:0":        {"kubernetes/api-endpoint"},
		"api-endpoint: https://api.example": {"kubernetes/api-endpoint"},
		"api-endpoint: Local":               {"kubernetes/api-endpoint"},
		"api-endpoint: 10.0.0.100\n  load-balance-ip: 10.0.0.99": {"kubernetes/api-endpoint"},
		"api-endpoint: local\n  load-balance-ip: 10.0.0.99":      {"kubernetes/api-endpoint"},
		"api-vip: 10.0.0.50":                                nil,
		"api-endpoint: local\n  api-vip: 10.0.0.50":         nil,
		"api-vip: 10.0.0.1":                                 {"kubernetes/api-vip"}, // the first master's
		"api-vip: 10.0.0.2":                                 {"kubernetes/api-vip"}, // a worker's
		"api-vip: 10.0.0.50:6443":                           {"kubernetes/api-vip"},
		"api-vip: fd00::1":                                  {"kubernetes/api-vip"},
		"api-vip: 127.0.0.1":                                {"kubernetes/api-vip"},
		"api-vip: 224.0.0.18":                               {"kubernetes/api-vip"},
		"api-vip: 169.254.0.1":                              {"kubernetes/api-vip"},
		"api-vip: 0.0.0.0":                                  {"kubernetes/api-vip"},
		"api-vip: api.example.org":                          {"kubernetes/api-vip"},
		"api-vip: 10.244.3.1":                               {"network/overlaps-api"},
		"api-vip: 10.254.0.9":                               {"network/overlaps-api"},
		"api-endpoint: 10.0.0.100\n  api-vip: 10.0.0.50":    {"kubernetes/api-vip"},
		"load-balance-ip: 10.0.0.100\n  api-vip: 10.0.0.50": {"kubernetes/api-vip"},
		"api-servers-port: 6444":                            {"kubernetes/reserved-port"},
	} {
		files := goodFiles()
		files[LayoutFile] += twoMoreMasters
		files[KubernetesFile] = good + "  " + written + "\n"
		findings, err := ValidateDir(folder(t, files))
		require.NoError(t, err)
		var got []string
		for _, f := range findings {
			got = append(got, f.Rule)
		}
		assert.Equal(t, rules, got, written)
	}
}

func TestTheAddressOfTheAPI(t *testing.T) {
	for _, c := range []struct{ layout, written, want string }{
		{"", "", "10.0.0.1:6443"},
		{"", "api-servers-port: 7443", "10.0.0.1:7443"},
		{"", "load-balance-ip: 10.0.0.100", "10.0.0.100:6443"},
		{"", "api-endpoint: local", "127.0.0.1:6444"},
		{twoMoreMasters, "", "127.0.0.1:6444"},
		{twoMoreMasters, "load-balance-ip: 10.0.0.1", "127.0.0.1:6444"},
		{twoMoreMasters, "load-balance-ip: 10.0.0.100", "10.0.0.100:6443"},
		{twoMoreMasters, "api-endpoint: 10.0.0.100:443", "10.0.0.100:443"},
		{twoMoreMasters, "api-endpoint: api.example.org", "api.example.org:6443"},
		{twoMoreMasters, "api-endpoint: 10.0.0.1", "10.0.0.1:6443"},
	} {
		files := goodFiles()
		files[LayoutFile] += c.layout
		files[KubernetesFile] += "  " + c.written + "\n"
		conf, err := Load(folder(t, files))
		require.NoError(t, err, c.written)
		assert.Equal(t, c.want, conf.Endpoint(), c.written)
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	files := goodFiles()
	delete(files, RolesFile)
	_, err := Load(folder(t, files))
	require.ErrorContains(t, err, RolesFile+" is missing in ")
	_, err = Load(filepath.Join(t.TempDir(), "nowhere"))
	require.ErrorContains(t, err, "there is no configuration folder")
	assert.Contains(t, hint.Of(err), "with -p or PAICTL_CONFIG")
}

func TestAFolderThatCannotBeReadIsNotCalledMissing(t *testing.T) {
	_, err := Load(strings.Repeat("x", 300))
	require.ErrorContains(t, err, "read the configuration: ")
	assert.Contains(t, hint.Of(err), "check the permissions")
	_, err = Load("https://u:sekrit@h/x?token=sekrit")
	require.ErrorContains(t, err, "https://********@h/x?******** is an address, not a folder")
	assert.Contains(t, hint.Of(err), "--from git::https://********@h/x")
	_, err = Load("no such folder")
	require.Error(t, err)
	assert.Contains(t, hint.Of(err), "-o 'no such folder'", "a path is one word of the command")
}

// The charts also check values that follow from other values. Only the original mistake is reported, with its position in the user's file.
func TestAConsequenceOfAMistakeIsNoSecondMistake(t *testing.T) {
	files := goodFiles()
	derived := func(c *Cluster) Findings {
		return Findings{c.Finding(ServicesFile, "error", where("alert-handler", "networks"), "services/refused", "has the same entry twice", "")}
	}
	findings, err := ValidateDir(folder(t, files), derived)
	require.NoError(t, err)
	assert.Len(t, findings, 1, "alone, it is all there is to report")
	files[KubernetesFile] = strings.Replace(files[KubernetesFile], "10.244.0.0/16", "10.254.0.0/16", 1)
	findings, err = ValidateDir(folder(t, files), derived)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	assert.Equal(t, "network/overlap", findings[0].Rule)
}

func TestAFolderWithoutConfigurationIsNamedAndHowToNameAnother(t *testing.T) {
	here, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Chdir(here)
	_, err = Load(".")
	require.EqualError(t, err, "there is no configuration in the current folder, "+here+": it has no layout.yaml")
	assert.Contains(t, hint.Of(err), "with -p or PAICTL_CONFIG")
	require.NoError(t, os.WriteFile(LayoutFile, nil, 0o600))
	_, err = Load(".")
	require.ErrorContains(t, err, "is missing in the current folder, "+here)
	assert.Contains(t, hint.Of(err), "with -p or PAICTL_CONFIG")
}

func TestMistakesOfFormInAllFilesComeTogether(t *testing.T) {
	files := map[string]string{}
	for name := range goodFiles() {
		files[name] = "apiVersion: paictl.openpai.org/v1\ncluster: {}\nk8s-role: {}\nkubernetes: {}\nmachine-list: []\nunknown-key: {}\n"
	}
	_, err := Load(folder(t, files))
	require.Error(t, err)
	for _, name := range []string{LayoutFile, KubernetesFile, RolesFile} {
		assert.Contains(t, err.Error(), name+":6:1: unknown-key: there is no key \"unknown-key\" here [yaml/unknown-key]")
	}
	assert.NotContains(t, err.Error(), ServicesFile+":6", "sections of services are free")
}

func TestAnUnknownKeyHidesNoUnknownComponent(t *testing.T) {
	files := goodFiles()
	files[RolesFile] = strings.ReplaceAll(files[RolesFile], "[etcd,", "[ectd,") + "  idle: {descripton: x}\n"
	_, err := Load(folder(t, files))
	require.ErrorContains(t, err, `there is no key "descripton" here`)
	require.ErrorContains(t, err, `there is no component "ectd"`)
}

func TestRulesHaveStableNames(t *testing.T) {
	// Scripts match these names, so a new name is an incompatible change.
	rules := map[string]bool{}
	for _, file := range []string{"build.go", "existing.go", "existing_nodes.go", "generate.go", "load.go", "quickstart_check.go", "validate.go", "validate_existing.go", "validate_layout.go", "validate_gpus_for_pods.go", "validate_kubernetes.go", "validate_services.go", "typed.go", "validate_extra.go", "validate_proxy.go", "validate_driver.go", "network_plugin.go"} {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for word := range strings.SplitSeq(string(b), `"`) {
			if group, name, ok := strings.Cut(word, "/"); ok && slices.Contains([]string{"file", "layout", "sku", "kubernetes", "network", "extra", "role", "services", "quick-start", "machine"}, group) && !strings.ContainsAny(name, " ./:") {
				rules[word] = true
			}
		}
	}
	golden(t, "rules.txt", []byte(strings.Join(slices.Sorted(maps.Keys(rules)), "\n")+"\n"))
}
