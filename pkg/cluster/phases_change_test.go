package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// TestUpMakesExactlyTheChangesThatADifferenceCallsFor makes one change after the other, in the configuration or on a host. It expects that the next
// up makes exactly the resulting changes. So it also finds changes that the previous up has left unfinished.
func TestUpMakesExactlyTheChangesThatADifferenceCallsFor(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	k := &l.conf.Kubernetes.Kubernetes
	w1 := l.host("w1")
	w1.swap()
	first := l.mustUp()
	assert.Contains(t, lines(first.changes), "w1 base run swapoff")
	assert.Equal(t, "/dev/vda1 / ext4 defaults 0 1\n#paictl-swap# /dev/vda2 none swap sw 0 0\n", w1.read("/etc/fstab"))

	reconfigured := []string{
		"m1 init update /etc/paictl/kubeadm.yaml",
		"m1 init run kubeadm init phase control-plane the control plane's settings have changed",
		"m1 init run kubeadm init phase upload-config the cluster's copy of the settings, CoreDNS and kube-proxy",
	}
	for _, c := range []struct {
		name  string
		later bool // the gate has a case of its kind
		do    func()
		want  []string
		calls map[string][]string // of some hosts
	}{
		{
			name: "a label is added to a machine, and a taint",
			do: func() {
				l.conf.Layout.MachineList[1].Labels = map[string]string{"rack": "a", "disk": "ssd"}
				l.conf.Layout.MachineList[1].Taints = []string{"dedicated=ml:NoSchedule", "old:NoExecute"}
			},
			want: []string{"m1 labels set node w1 label disk=ssd, label rack=a, taint dedicated=ml:NoSchedule, taint old:NoExecute"},
		},
		{
			name: "a label is removed, a taint changes its value and another goes",
			do: func() {
				l.conf.Layout.MachineList[1].Labels = map[string]string{"rack": "b"}
				l.conf.Layout.MachineList[1].Taints = []string{"dedicated=dl:NoSchedule"}
			},
			want: []string{"m1 labels set node w1 label rack=b, label disk-, taint dedicated=dl:NoSchedule, taint old:NoExecute-"},
			calls: map[string][]string{"m1": {
				"kubectl label node w1 --overwrite rack=b disk-",
				"kubectl taint node w1 --overwrite dedicated=dl:NoSchedule old:NoExecute-",
				"kubectl annotate node w1 --overwrite paictl.openpai.org/owned=pai-worker,rack,dedicated=dl:NoSchedule",
			}},
		},
		{
			name:  "somebody else's label and taint stay",
			later: true,
			do: func() {
				require.NoError(t, os.WriteFile(l.cluster+"/nodes/w1/labels", []byte("kubernetes.io/hostname=w1\nmine=yes\npai-worker=true\nrack=b\n"), 0o644))
				require.NoError(t, os.WriteFile(l.cluster+"/nodes/w1/taints", []byte("dedicated=dl:NoSchedule\nmine:NoExecute\n"), 0o644))
			},
		},
		{
			name:  "a setting of containerd",
			do:    func() { k.Extra.Containerd = map[string]any{"debug": map[string]any{"level": "debug"}} },
			want:  onBoth("containerd update /etc/containerd/config.toml", "containerd restart containerd.service its files change"),
			calls: map[string][]string{"w1": {"systemctl restart containerd.service"}},
		},
		{
			name:  "a setting of the kubelet",
			later: true,
			do:    func() { k.Extra.Kubelet = map[string]any{"maxPods": 200} },
			// kubeadm's file is changed for machines that join later. The control plane isn't restarted.
			want: []string{
				"m1 kubelet update /etc/paictl/kubelet.conf.d/10-paictl.conf", "m1 kubelet restart kubelet.service its files change",
				"m1 init update /etc/paictl/kubeadm.yaml", "w1 kubelet update /etc/paictl/kubelet.conf.d/10-paictl.conf", "w1 kubelet restart kubelet.service its files change",
			},
		},
		{
			name: "a setting of kubeadm",
			do: func() {
				k.Extra.Kubeadm = map[string]any{"scheduler": map[string]any{"extraArgs": phases.Args("v", "4")}}
			},
			want: reconfigured,
			calls: map[string][]string{"m1": {
				"kubeadm init phase certs apiserver", "kubeadm init phase certs etcd-server", "kubeadm init phase certs etcd-peer",
				"kubeadm init phase control-plane all", "kubeadm init phase upload-config all",
				"kubeadm init phase addon all", "kubectl -n kube-system rollout restart daemonset/kube-proxy", "kubectl patch configmap paictl stored",
			}},
		},
		{
			name:  "a kernel setting",
			later: true,
			do:    func() { k.Extra.Sysctl = map[string]string{"vm.max_map_count": "262144"} },
			want:  onBoth("base set sysctl vm.max_map_count 65530 -> 262144", "base update "+phases.SysctlFile),
		},
		{
			name:  "a damaged program of a running unit",
			later: true,
			do:    func() { w1.write("/usr/local/bin/containerd", "ruined") },
			want:  []string{"w1 containerd update /usr/local/bin/containerd containerd v1", "w1 containerd restart containerd.service its files have changed"},
		},
		{
			name:  "a program that lost its mode",
			later: true,
			do:    func() { require.NoError(t, os.Chmod(w1.root+"/opt/cni/bin/bridge", 0o600)) },
			want:  []string{"w1 containerd update /opt/cni/bin/bridge bridge v1"},
		},
		{
			name: "a line of the machine's own in /etc/hosts, and one of ours changed",
			do: func() {
				w1.write("/etc/hosts", strings.Replace(w1.read("/etc/hosts"), "10.9.0.1 m1", "10.9.0.9 m1", 1)+"10.1.1.1 mine\n")
			},
			want: []string{"w1 base update /etc/hosts the block of paictl"},
		},
		{
			name:  "a unit that was stopped",
			later: true,
			do:    func() { w1.remove("/.fake/units/containerd.service.active") },
			want:  []string{"w1 containerd start containerd.service"},
			calls: map[string][]string{"w1": {"systemctl restart containerd.service"}},
		},
		{
			name:  "containerd's store that was deleted while it was stopped",
			later: true,
			do: func() {
				for _, p := range []string{"/.fake/units/containerd.service.active", "/var/lib/containerd", "/.fake/images"} {
					w1.remove(p)
				}
				require.NoError(t, os.Mkdir(w1.root+"/.fake/images", 0o755))
			},
			want: []string{
				"w1 containerd start containerd.service", "w1 images import registry.k8s.io/kube-proxy:v1.36.3 v1",
				"w1 images import registry.k8s.io/pause:3.10.1 v1", "w1 images import registry.k8s.io/coredns/coredns:v1.12.1 v1",
				"w1 images import ghcr.io/flannel-io/flannel:v0.27.0 v1",
			},
		},
		{
			name:  "a unit that was disabled",
			later: true,
			do:    func() { w1.remove("/.fake/units/kubelet.service.enabled") },
			want:  []string{"w1 kubelet enable kubelet.service"},
			calls: map[string][]string{"w1": {"systemctl enable kubelet.service"}},
		},
		{
			name:  "an image that was removed",
			later: true,
			do:    func() { w1.remove("/.fake/images/registry.k8s.io%pause:3.10.1") },
			want:  []string{"w1 images import registry.k8s.io/pause:3.10.1 v1"},
			calls: map[string][]string{"w1": {"ctr images import registry.k8s.io/pause:3.10.1"}},
		},
		{
			name:  "an image that lost its pin",
			later: true,
			do: func() {
				f := w1.root + "/.fake/images/registry.k8s.io%pause:3.10.1"
				digest, _, _ := strings.Cut(w1.read("/.fake/images/registry.k8s.io%pause:3.10.1"), "\n")
				require.NoError(t, os.WriteFile(f, []byte(digest+"\n"), 0o644))
			},
			want: []string{"w1 images import registry.k8s.io/pause:3.10.1 v1"},
		},
		{
			name: "a node that was deleted from the cluster",
			do:   func() { require.NoError(t, os.RemoveAll(l.cluster+"/nodes/w1")) },
			want: []string{
				"m1 labels set node w1 label pai-worker=true, label rack=b, taint dedicated=dl:NoSchedule",
				"w1 join run kubeadm join the cluster no longer has it",
			},
		},
		{
			name:  "a join that was cut off before its end was recorded",
			later: true,
			do:    func() { w1.remove(paths.Member) },
			want: []string{
				"m1 labels set node w1 label pai-worker=true, label rack=b, taint dedicated=dl:NoSchedule",
				"w1 join delete node w1 remains of an earlier attempt", "w1 join run kubeadm join",
			},
		},
		{
			name:  "the script that makes the network's configuration",
			later: true,
			do:    func() { w1.remove(phases.CNIScript) },
			want:  []string{"w1 network create /usr/local/libexec/paictl/flannel-cni 755", "w1 network enable paictl-cni.service its files change before it starts"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.later {
				later(t)
			}
			l.forgetCalls()
			c.do()
			o := l.mustUp()
			assert.Equal(t, c.want, splitLines(lines(o.changes)))
			for host, calls := range c.calls {
				assert.Equal(t, calls, l.host(host).calls())
			}
		})
	}
	assert.Empty(t, lines(l.mustUp().changes), "after the last; what another had left undone, the one after it found")
	assert.Equal(t, "127.0.0.1 localhost\n10.1.1.1 mine\n# BEGIN paictl\n10.9.0.1 m1\n10.9.0.2 w1\n# END paictl\n", w1.read("/etc/hosts"))
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSpace(s), "\n")
}

func onBoth(changes ...string) []string {
	var out []string
	for _, h := range []string{"m1 ", "w1 "} {
		for _, c := range changes {
			out = append(out, h+c)
		}
	}
	return out
}

func TestThreeControlPlaneMachinesJoinOneAfterTheOther(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	o := l.mustUp() // the stub of kubeadm fails if two members are added at once
	assert.Equal(t, []string{"m1", "m2", "m3", "w1"}, l.nodes())
	assert.Less(t, o.at(engine.EventPhaseDone, "m2", engine.PhaseJoin), o.at(engine.EventPhaseStarted, "m3", engine.PhaseJoin))
	key := l.host("m1").read(phases.EncryptionFile)
	assert.Contains(t, key, "secretbox")
	for _, m := range []string{"m2", "m3"} {
		assert.Equal(t, key, l.host(m).read(phases.EncryptionFile), "one key encrypts the secrets of all")
		info, err := os.Stat(l.host(m).root + phases.EncryptionFile)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	assert.NoFileExists(t, l.host("w1").root+phases.EncryptionFile)
	assert.Contains(t, l.host("w1").read("/etc/kubernetes/kubelet.conf"), "https://10.9.0.100:6443")
	assert.NoFileExists(t, l.host("m1").root+engine.StateDir+"/certificate-key.yaml")
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestPhasesAndLimitNarrowARunDown(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	narrow := func(phases, hosts string) func(*labOptions, *ssh.Options) {
		return func(o *labOptions, _ *ssh.Options) { o.Phases, o.Limit = strings.Fields(phases), strings.Fields(hosts) }
	}
	o := l.up(t.Context(), narrow("base containerd", "w1 10.9.0.1 w1"))
	require.NoError(t, o.err)
	for _, c := range o.changes {
		assert.Contains(t, []string{"m1", "w1"}, c.Host)
		assert.Contains(t, []string{phases.PhaseBase, phases.PhaseContainerd}, c.Phase)
	}
	assert.Equal(t, 2, o.summary().Hosts)
	assert.Zero(t, o.trips.Host("w2").Dials)

	o = l.up(t.Context(), narrow("", "w9"))
	require.ErrorContains(t, o.err, "w9 is not a machine of the layout")
	o = l.up(t.Context(), narrow("base docker", ""))
	require.ErrorContains(t, o.err, `there is no phase "docker"`)
	assert.Empty(t, o.events, "nothing has begun")
}

func TestAnotherRegistryNamesTheImages(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.conf.Kubernetes.Kubernetes.DockerRegistry = "harbor.example.org/k8s"
	l.mustUp()
	for _, h := range l.hosts {
		assert.Contains(t, h.read(phases.ContainerdConf), "harbor.example.org/k8s/pause:3.10.1")
		assert.FileExists(t, h.root+"/.fake/images/harbor.example.org%k8s%kube-proxy:v1.36.3")
	}
	assert.Contains(t, l.host("m1").read(engine.KubeadmConf), "imageRepository: harbor.example.org/k8s\n")
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestTheNetworkPluginMayBeTheOperatorsOwn(t *testing.T) {
	t.Parallel()
	t.Run("none: nothing is installed, and no node is waited for", func(t *testing.T) {
		l := newLab(t, 1, 1)
		l.conf.Kubernetes.Kubernetes.NetworkPlugin = phases.NetworkNone
		l.mustUp()
		assert.NoFileExists(t, l.cluster+"/objects/network")
		assert.NoFileExists(t, l.host("w1").root+phases.CNIScript)
		assert.Empty(t, lines(l.mustUp().changes))
	})
	t.Run("a manifest: it is applied, and again when it changes", func(t *testing.T) {
		l := newLab(t, 1, 1)
		l.conf.Kubernetes.Kubernetes.NetworkPlugin = "calico.yaml"
		files, err := l.conf.Render()
		require.NoError(t, err)
		require.NoError(t, config.WriteFolder(l.conf.Dir, files, l.conf.HoldsSecret, false))
		load := func() *config.Cluster { // as the commands do
			c, err := config.Load(l.conf.Dir)
			require.NoError(t, err)
			return c
		}
		found := config.Validate(load()).Errors()
		require.ErrorContains(t, found, "there is no file "+filepath.Join(l.conf.Dir, "calico.yaml"))
		l.conf = load()
		o := l.up(t.Context())
		require.ErrorContains(t, o.err, "calico.yaml: no such file or directory (nothing was changed)")
		assert.Contains(t, hint.Of(o.err), "network-plugin in kubernetes-configuration.yaml")
		manifest := filepath.Join(l.conf.Dir, "calico.yaml")
		require.NoError(t, os.WriteFile(manifest, []byte("kind: List\n"), 0o644))
		l.conf = load()
		require.NotContains(t, config.Validate(l.conf).Error(), "network-plugin")
		l.mustUp()
		assert.NoFileExists(t, l.host("w1").root+phases.CNIScript)
		require.NoError(t, os.WriteFile(manifest, []byte("kind: List\nitems: []\n"), 0o644))
		assert.Equal(t, []string{"m1 network update /etc/paictl/network.yaml", "m1 network run kubectl apply network plugin calico.yaml"},
			splitLines(lines(l.mustUp().changes)))
		applied, err := os.ReadFile(l.cluster + "/objects/network")
		require.NoError(t, err)
		assert.Equal(t, "kind: List\nitems: []\n", string(applied))
	})
}
