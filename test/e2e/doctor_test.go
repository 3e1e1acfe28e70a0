package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// report is the output of "doctor -o json".
type report struct {
	Verdict string
	Counts  struct{ OK, Skipped, Warning, Problem int }
	Checks  []struct {
		ID, Verdict string
		Seconds     float64
		Findings    []struct{ Where, Verdict, Message, Evidence, Remedy string }
	}
	Fixes []struct{ What, Error string }
}

// found returns the findings of a check that are warnings or problems, as "check: where: message (evidence) -> remedy". If check is "", it returns
// those of all checks.
func (r *report) found(check string) (out []string) {
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			if (check == "" || c.ID == check) && (f.Verdict == "warning" || f.Verdict == "problem") {
				out = append(out, c.ID+": "+f.Where+": "+f.Message+" ("+f.Evidence+") -> "+f.Remedy)
			}
		}
	}
	return out
}

// sick is a cluster on which the tests run the doctor.
type sick struct{ *services }

// ask runs the doctor, which must exit with a given code, and returns its report.
func (s *sick) ask(t *testing.T, code int, flags ...string) *report {
	t.Helper()
	r := run(t, append([]string{"doctor", "-p", s.cluster, "-o", "json"}, flags...)...)
	require.Equal(t, code, r.code, "doctor: %s", r)
	out := &report{}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), out), r)
	return out
}

// ofHosts returns all findings except those about the disk of the test's machine, which all hosts share and which may be nearly full.
func (r *report) ofHosts() []string {
	return slices.DeleteFunc(r.found(""), func(f string) bool {
		return strings.HasPrefix(f, "disk-space: ") && (strings.Contains(f, ": / is full") || strings.Contains(f, ": /var is full"))
	})
}

// finds expects a finding of a check at a place that begins with where, with the given message and remedy.
func (s *sick) finds(t *testing.T, r *report, check, where, message, remedy string) {
	t.Helper()
	all := r.found(check)
	ok := slices.ContainsFunc(all, func(f string) bool {
		head, tail, _ := strings.Cut(f, " -> ")
		return strings.HasPrefix(head, check+": "+where) && strings.Contains(head, message) && strings.Contains(tail, remedy)
	})
	assert.True(t, ok, "%s of %q with %q and %q is not among %s", check, where, message, remedy, strings.Join(r.found(""), "\n"))
}

// well waits until the doctor has no findings, because repairs take a moment.
func (s *sick) well(t *testing.T, flags ...string) *report {
	t.Helper()
	var last *report
	eventually(t, time.Minute, "the doctor finds nothing", func() bool {
		r := run(t, append([]string{"doctor", "-p", s.cluster, "-o", "json"}, flags...)...)
		last = &report{}
		require.NoError(t, json.Unmarshal([]byte(r.stdout), last), r)
		left := last.ofHosts()
		if len(left) > 0 {
			t.Log(strings.Join(left, "\n"))
		}
		return r.code == 0 || len(left) == 0
	})
	return last
}

// TestDoctor breaks a healthy cluster in several ways, one after the other. The doctor must find each fault.
func TestDoctor(t *testing.T) {
	s := &sick{&services{lab: newLab(t, "e2ed", 3)}}
	edit(t, filepath.Join(s.dir, "quick-start.yaml"), "gpu: none", "gpu: simulate")
	s.bringUp()
	s.push()
	s.start(0)
	s.allReady()
	master, first, second := s.names[0], s.names[1], s.names[2]

	t.Run("a healthy cluster has nothing, and jobs run", func(t *testing.T) {
		r := s.well(t, "--end-to-end", "--skip", "alerts-firing") // the load of the machine below can raise alerts
		assert.GreaterOrEqual(t, r.Counts.OK, 45, "most checks have something to look at")
		for _, c := range r.Checks {
			if slices.Contains([]string{"hello-jobs", "gang-job", "dns", "pod-network", "service-network", "scheduler-hardware", "agent-running", "etcd-health"}, c.ID) {
				assert.Equal(t, "ok", c.Verdict, "%s: %v", c.ID, c.Findings)
			}
		}
		s.clean(t)
		assert.NotContains(t, s.kubectl("-n pai-jobs get frameworks -l userName=paictl-doctor -o name"), "framework")
	})
	t.Run("without a folder the machines are skipped, and it says so", func(t *testing.T) {
		cmd, out, errOut := command(t.Context(), t, "doctor", "--kubeconfig", s.kubeconfig, "--skip", "alerts-firing")
		cmd.Dir = t.TempDir()
		require.NoError(t, cmd.Run(), "%s%s", out, errOut)
		assert.Contains(t, out.String(), "give -p DIR")
	})
	t.Run("on a cluster that paictl did not install the API is looked at beside the folder", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "existing")
		ok(t, "config", "generate", "--from-kubeconfig", s.kubeconfig, "-o", dir)
		// The pushed folder belongs to the cluster that paictl has installed.
		r := run(t, "doctor", "-p", dir, "--kubeconfig", s.kubeconfig, "--skip", "configuration,alerts-firing")
		assert.Equal(t, 0, r.code, "%s", r)
		assert.Contains(t, r.stdout, "connect to its machines")
	})
	t.Run("Ctrl-C removes the pods", func(t *testing.T) {
		s.clean(t)
		cmd, _, errOut := command(t.Context(), t, "doctor", "-p", s.cluster)
		require.NoError(t, cmd.Start())
		eventually(t, time.Minute, "the pods are made", func() bool { return strings.Contains(s.kubectl("get namespaces -o name"), "paictl-doctor") })
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait()
		assert.Equal(t, 130, cmd.ProcessState.ExitCode(), errOut)
		s.clean(t)
	})
	t.Run("the next run removes what a killed one left", func(t *testing.T) {
		s.clean(t)
		cmd, _, _ := command(t.Context(), t, "doctor", "-p", s.cluster)
		require.NoError(t, cmd.Start())
		eventually(t, time.Minute, "the pods are made", func() bool { return strings.Contains(s.kubectl("get namespaces -o name"), "paictl-doctor") })
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		s.finds(t, s.ask(t, 1, "--only", "doctor-left"), "doctor-left", s.onlyNamespace(), "was killed", "kubectl delete namespace")
		s.ask(t, 0, "--only", "dns")
		s.clean(t)
	})

	// One run of the doctor finds all of these faults, which saves time.
	t.Run("faults of machines", func(t *testing.T) {
		s.on(first, "systemctl stop kubelet")
		// This path isn't the path for pods, so the doctor must check the full file system itself.
		s.on(second, "mkdir -p /datastorage && mount -t tmpfs -o size=8m tmpfs /datastorage && head -c 8200000 /dev/zero >/datastorage/full")
		s.on(second, "mkdir -p /mnt/shared && echo 'files.invalid:/shared /mnt/shared nfs defaults,nofail 0 0' >>/etc/fstab")
		s.on(second, `printf '#!/bin/sh\nfor a; do case $a in -*) ;; +*%%s*) f=1 ;; esac; done\n[ -z "${f:-}" ] || set -- -d +5min "$@"\nexec /bin/date "$@"\n' >/usr/local/bin/date && chmod +x /usr/local/bin/date`)
		s.on(second, "rm /etc/sysctl.d/99-zz-paictl.conf")
		s.on(master, expiring)
		r := s.ask(t, 2, "--only", "machines,storage,certificates")
		s.finds(t, r, "kubelet-active", first, "doesn't run (inactive)", "systemctl enable --now kubelet")
		s.finds(t, r, "disk-space", second, "/datastorage is ", "free space")
		s.finds(t, r, "mounts", second, "/mnt/shared isn't mounted", "mount /mnt/shared")
		s.finds(t, r, "clocks", second, "ahead of the other machines'", "timedatectl set-ntp true")
		s.finds(t, r, "kernel-settings", second, "will be lost at the next reboot", "--fix")
		s.finds(t, r, "certificates", master, "apiserver-kubelet-client expires in 2 days", "paictl-certificates.service")
		assert.Len(t, r.ofHosts(), 6, strings.Join(r.ofHosts(), "\n"))

		r = s.ask(t, 2, "--only", "machines", "--fix", "--yes")
		assert.Len(t, r.Fixes, 2, "the kubelet and the settings: %v", r.Fixes)
		assert.Equal(t, "active", strings.TrimSpace(s.on(first, "systemctl is-active kubelet")))
		assert.Contains(t, s.on(second, "cat /etc/sysctl.d/99-zz-paictl.conf"), "ip_forward")
		s.on(second, "umount /datastorage; rm /usr/local/bin/date; sed -i /files.invalid/d /etc/fstab")
		s.on(master, "mv /root/kept.crt /etc/kubernetes/pki/apiserver-kubelet-client.crt")
		s.well(t, "--only", "machines,storage,certificates,nodes-ready")
	})
	t.Run("faults of the platform", func(t *testing.T) {
		s.kubectl("-n pai-system set image daemonset/node-exporter '*=paictl.openpai.org/no-such-image:v1'")
		s.kubectl(`-n pai-system patch daemonset agent --type merge -p '{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":"nowhere"}}}}}'`)
		s.kubectl("-n kube-system scale deployment coredns --replicas 0")
		edit(t, filepath.Join(s.cluster, "layout.yaml"), "count: 8", "count: 6")
		eventually(t, time.Minute, "the agents are gone and the image is missed", func() bool {
			return !strings.Contains(s.kubectl("-n pai-system get pods -o name -l app.kubernetes.io/name=agent"), "pod/") &&
				!strings.Contains(s.kubectl("-n kube-system get pods -o name -l k8s-app=kube-dns"), "pod/") &&
				strings.Contains(s.kubectl("-n pai-system get pods --no-headers -l app.kubernetes.io/name=node-exporter"), "Pull")
		})
		// The machine reports two GPUs fewer than its cells contain. The report isn't corrected, because the agent doesn't run.
		s.kubectl("annotate --overwrite node " + first + ` paictl.openpai.org/gpus='{"devices":[{"index":0,"healthy":true},{"index":1,"healthy":true},{"index":2,"healthy":true},{"index":3,"healthy":true},{"index":4,"healthy":true},{"index":5,"healthy":true}]}'`)
		r := s.ask(t, 2)
		s.finds(t, r, "image-pulls", "pai-system/node-exporter", "no-such-image", "paictl image push")
		s.finds(t, r, "services-ready", "node-exporter", "isn't ready", "")
		s.finds(t, r, "agent-running", first, "no agent runs there", "paictl service start -n agent")
		s.finds(t, r, "scheduler-hardware", first, "GPUs [6 7] of the configuration are missing", "change its SKU in layout.yaml")
		s.finds(t, r, "dns", "", "pods on all machines can't resolve names", "kubectl -n kube-system get deployment")
		s.finds(t, r, "configuration-pushed", "", "layout.yaml differs from revision", "paictl config push")

		edit(t, filepath.Join(s.cluster, "layout.yaml"), "count: 6", "count: 8")
		s.kubectl("-n kube-system scale deployment coredns --replicas 2")
		s.kubectl("-n pai-system rollout undo daemonset/node-exporter")
		s.kubectl("-n pai-system rollout undo daemonset/agent")
		s.well(t, "--skip", "alerts-firing,monitoring-targets,crash-loops")
	})
	t.Run("a machine that is off", func(t *testing.T) {
		ok(t, "sandbox", "stop", "--dir", s.dir, second, "--unplug")
		r := s.ask(t, 2, "--only", "machines,kubernetes,network")
		s.finds(t, r, "machines-reachable", second, "doesn't answer by SSH", "switch it on")
		assert.NotContains(t, strings.Join(r.found("kubelet-active"), ""), second, "who is off isn't told twice")
		ok(t, "sandbox", "start", "--dir", s.dir, second)
		s.isReady(3)
		s.well(t, "--only", "machines,kubernetes,network")
	})
	t.Run("an API server that is down", func(t *testing.T) {
		s.on(master, "mv /etc/kubernetes/manifests/kube-apiserver.yaml /root/")
		eventually(t, time.Minute, "it is down", func() bool {
			return exec.CommandContext(t.Context(), filepath.Join(bundle, "bin", "kubectl"), "--kubeconfig", s.kubeconfig, "get", "--raw", "/readyz", "--request-timeout=2s").Run() != nil
		})
		r := s.ask(t, 2)
		s.finds(t, r, "api-server", "", "doesn't answer", "crictl")
		s.finds(t, r, "api-servers", master, "doesn't answer", "crictl")
		assert.Positive(t, r.Counts.OK, "the machines are asked all the same")
		s.on(master, "mv /root/kube-apiserver.yaml /etc/kubernetes/manifests/")
		eventually(t, time.Minute, "it is back", func() bool {
			_, err := s.try(master, "KUBECONFIG=/etc/kubernetes/admin.conf kubectl get --raw /readyz")
			return err == nil
		})
		s.isReady(3)
		s.well(t, "--only", "machines,kubernetes")
	})
}

// clean waits until the doctor's objects are gone, because Kubernetes takes a moment to remove a namespace.
func (s *sick) clean(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, "the doctor's pods are gone", func() bool { return s.onlyNamespace() == "" })
}

// onlyNamespace returns the name of the doctor's namespace, or "" if it doesn't exist.
func (s *sick) onlyNamespace() string {
	for name := range strings.FieldsSeq(s.kubectl("get namespaces -o name")) {
		if strings.Contains(name, "paictl-doctor") {
			return strings.TrimPrefix(name, "namespace/")
		}
	}
	return ""
}

// expiring is a script that replaces a certificate with one that expires in three days.
const expiring = `p=/etc/kubernetes/pki; cp $p/apiserver-kubelet-client.crt /root/kept.crt
openssl req -new -key $p/apiserver-kubelet-client.key -subj /O=system:masters/CN=kube-apiserver-kubelet-client |
	openssl x509 -req -CA $p/ca.crt -CAkey $p/ca.key -CAcreateserial -days 3 -out $p/apiserver-kubelet-client.crt 2>/dev/null
rm -f $p/ca.srl`

// TestDoctorMissesAMember removes etcd from one of three masters. It first stops the program, and then removes the member.
func TestDoctorMissesAMember(t *testing.T) {
	s := &sick{&services{lab: newLab(t, "e2edm", 3)}}
	s.masters(s.balance(3), 0, 1, 2)
	s.up(0)
	s.isReady(3)
	third := s.names[2]
	s.well(t, "--only", "machines,kubernetes,network")

	s.on(third, "mv /etc/kubernetes/manifests/etcd.yaml /root/")
	eventually(t, time.Minute, "its etcd is missed", func() bool {
		r := run(t, "doctor", "-p", s.cluster, "-o", "json", "--only", "etcd-members")
		return r.code == 2 && strings.Contains(r.stdout, "its etcd doesn't answer")
	})
	s.finds(t, s.ask(t, 2, "--only", "etcd-members"), "etcd-members", third, "its etcd doesn't answer", "crictl logs")
	s.on(third, "mv /root/etcd.yaml /etc/kubernetes/manifests/")
	s.well(t, "--only", "etcd-members,etcd-health,api-servers")

	for _, m := range s.etcd(0) {
		if id, rest, _ := strings.Cut(m, ", "); strings.Contains(rest, third) {
			s.from(0, fmt.Sprintf("-n kube-system exec etcd-%s -- etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key member remove %s", s.names[0], id))
		}
	}
	s.finds(t, s.ask(t, 2, "--only", "etcd-members"), "etcd-members", third, "not an etcd member", "paictl node remove "+third)
}
