package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/test/runnable"
)

func (l *lab) options() engine.Options {
	so := sshtest.Options(l.t, l.servers()...)
	so.Gate = ssh.DryRunGate{}
	counter := &ssh.Counter{}
	so.Tracer = counter
	client := ssh.NewClient(so)
	l.t.Cleanup(func() { _ = client.Close() })
	return engine.Options{
		Dialer: client, Sink: &sink{}, Clock: time.Now, StepTimeout: 5 * time.Minute, Command: "paictl cluster status",
		RoundTrips: func(h string) int { return counter.Host(h).RoundTrips },
	}
}

// certificate returns the PEM of a certificate that expires at end, followed by its key.
func certificate(t *testing.T, name string, end time.Time) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func TestStatusAsksEachMachineOnceAndReadsCertificatesWithoutTheirKeys(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 1)
	now := time.Now()
	m, w := l.host("m1"), l.host("w1")
	m.write("/etc/kubernetes/pki/apiserver.crt", certificate(t, "kube-apiserver", now.Add(40*24*time.Hour)))
	m.write("/etc/kubernetes/pki/etcd/server.crt", certificate(t, "etcd", now.Add(-time.Hour)))
	m.write("/etc/kubernetes/pki/broken.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	m.write("/etc/kubernetes/admin.conf", "users:\n- user:\n    client-certificate-data: "+
		base64.StdEncoding.EncodeToString([]byte(certificate(t, "kubernetes-admin", now.Add(10*24*time.Hour))))+"\n    client-key-data: c2VjcmV0\n")
	for _, h := range []*fakeHost{m, w} {
		h.write("/etc/kubernetes/kubelet.conf", "x")
		h.write("/var/lib/kubelet/pki/kubelet-client-current.pem", certificate(t, "system:node:"+h.name, now.Add(300*24*time.Hour)))
	}
	w.write("/var/lib/kubelet/config.yaml", "rotateCertificates: true\n")
	m.write("/run/paictl.lock", "alice@laptop, pid 7\t2026-01-02T03:04:05Z\n")

	o := l.options()
	st, err := GetStatus(t.Context(), l.spec(), o)
	require.NoError(t, err)
	assert.Equal(t, 1, o.RoundTrips("m1"))
	assert.Equal(t, 1, o.RoundTrips("w1"))
	assert.Nil(t, st.Lock, "nobody holds the file locked")
	require.Len(t, st.Machines, 2)
	assert.Equal(t, []string{"worker"}, st.Machines[1].Roles)

	type row struct {
		host, name string
		days       int
		expired    bool
	}
	var got []row
	for _, c := range st.Certificates {
		if c.Error == "" {
			got = append(got, row{c.Host, c.Name, c.Days, c.Expired})
		} else {
			assert.Equal(t, "broken", c.Name)
		}
	}
	assert.Equal(t, []row{
		{"m1", "etcd/server", 0, true}, {"m1", "admin.conf", 9, false}, {"m1", "apiserver", 39, false},
		{"m1", "kubelet", 299, false}, {"w1", "kubelet", 299, false},
	}, got)
	assert.Equal(t, Renewal{Kubelet: false, ControlPlane: false, Off: []string{"m1"}}, st.Renewal)

	machines, err := ListMachines(t.Context(), l.spec(), o)
	require.NoError(t, err)
	for i := range machines { // this API doesn't have the versions
		for _, p := range []*ProgramStatus{machines[i].Kubelet, machines[i].Containerd, st.Machines[i].Kubelet, st.Machines[i].Containerd} {
			if p != nil {
				p.Version = ""
			}
		}
	}
	assert.Equal(t, st.Machines, machines, "a list shows the same")
}

func TestStatusOfAMachineThatIsOffIsPartOfTheAnswer(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 1)
	l.host("w1").server.Close()
	st, err := GetStatus(t.Context(), l.spec(), l.options())
	var partial *engine.PartialError
	require.ErrorAs(t, err, &partial)
	assert.Equal(t, 3, partial.ExitCode())
	assert.Equal(t, StateOutside, st.Machines[0].State)
	assert.Equal(t, StateUnreachable, st.Machines[1].State)
	assert.NotEmpty(t, st.Machines[1].Message)
	assert.Equal(t, "absent", st.API)
	assert.Contains(t, st.Machines[0].Hint, "paictl cluster up")
	assert.Contains(t, st.Machines[1].Hint, "sshd")
	assert.Contains(t, partial.Failed[0].Hint, "sshd")
}

func TestStatusDoesNotGuessAboutAnAPIThatItCouldNotAsk(t *testing.T) {
	s := preflightSpec(t, 1)
	refused := hint.Errorf("give the password", "login on m1: %w", ssh.ErrAuth)
	answers := map[*engine.Node]answer.Answer{s.Nodes[1]: sectionsOf([]byte("@@ status\nmember\tyes\n"))["status"]}
	st := newStatus(s, s.Nodes, answers, map[*engine.Node]error{s.Nodes[0]: refused}, time.Now())
	assert.Equal(t, "unknown", st.API)
	assert.Contains(t, st.APIMessage, "login on m1")
	assert.Equal(t, []string{StateUnknown, "give the password"}, []string{st.Machines[0].State, st.Machines[0].Hint})
	assert.Equal(t, StateUnknown, st.Machines[1].State)
}

func TestStatusNamesWhoHoldsTheLock(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 0)
	held := l.options()
	so := sshtest.Options(t, l.servers()...)
	client := ssh.NewClient(so)
	t.Cleanup(func() { _ = client.Close() })
	held.Dialer, held.Owner = client, "bob@desk, pid 9"
	r := engine.NewRun(l.spec(), held)
	defer r.Close()
	require.NoError(t, r.Dial(t.Context(), r.Spec.ControlPlane()[0]))
	_, unlock, err := r.Lock(t.Context())
	require.NoError(t, err)
	defer unlock()

	st, err := GetStatus(t.Context(), l.spec(), l.options())
	require.NoError(t, err)
	require.NotNil(t, st.Lock)
	assert.Equal(t, "bob@desk, pid 9", st.Lock.Owner)
	assert.NotEmpty(t, st.Lock.Since)
}

// The lines of the golden file come from the first machine of a real cluster.
func TestStatusJoinsWhatMachinesAndAPISay(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "status-m1.txt"))
	require.NoError(t, err)
	s := preflightSpec(t, 3)
	answers := map[*engine.Node]answer.Answer{}
	for _, n := range s.Nodes {
		text := "member\tyes\nkubelet\tv1.36.3\tactive\ncontainerd\tv2.4.2\tfailed\nrenewal\tkubelet\ton\n"
		if n.ControlPlane {
			text = string(golden)
		}
		answers[n] = sectionsOf([]byte("@@ status\n" + text))["status"]
	}
	errs := map[*engine.Node]error{s.Nodes[3]: errors.New("reach w3: sudo refused")}
	st := newStatus(s, s.Nodes, answers, errs, time.Now())
	assert.Equal(t, "up", st.API)
	assert.Equal(t, LockOwner{Owner: "root@ops, pid 1", Since: "2026-11-20T20:00:00Z"}, *st.Lock)
	states := map[string]string{}
	for _, m := range st.Machines {
		states[m.Host] = m.State
	}
	assert.Equal(t, map[string]string{"m1": StateReady, "w1": StateNotReady, "w2": StateOutside, "w3": StateUnknown}, states)
	w1 := st.Machines[1]
	assert.Equal(t, "KubeletNotReady: container runtime is down", w1.Message)
	assert.True(t, w1.Cordoned)
	assert.Equal(t, []string{"DiskPressure"}, w1.Pressure)
	assert.Equal(t, &ProgramStatus{Version: "v2.4.2", State: "failed"}, w1.Containerd)
	assert.Equal(t, []ComponentStatus{
		{Name: "etcd", Host: "m1", Ready: 1, Desired: 1},
		{Name: "kube-scheduler", Host: "m1", Desired: 1, Restarts: 4, Message: "waiting CrashLoopBackOff"},
		{Name: "coredns", Ready: 1, Desired: 2},
	}, st.Components)
	assert.True(t, st.Renewal.Kubelet)
	assert.True(t, st.Renewal.ControlPlane)
}

// A kubelet may write any conditions, addresses and labels to its node.
func TestStatusNamesNodesThatTheLayoutDoesNotList(t *testing.T) {
	s := preflightSpec(t, 1)
	api := sectionsOf([]byte("@@ status\nmember\tyes\napi\tup\t\n" + nodeRows(t, `{"items": [
		{"metadata": {"name": "w9"}, "spec": {"unschedulable": true, "podCIDR": "10.244.9.0/24"}, "status": {
			"addresses": [{"type": "Hostname", "address": "w9"}, {"type": "InternalIP", "address": "fd00::9"}, {"type": "InternalIP", "address": "10.0.0.99"}],
			"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}]}},
		{"metadata": {"name": "m1", "labels": {"node-role.kubernetes.io/control-plane": ""}}, "spec": {},
			"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
		{"metadata": {"name": "m3", "labels": {"a": "b", "node-role.kubernetes.io/control-plane": ""}}, "spec": {},
			"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.3"}], "conditions": [{"type": "Ready", "status": "True"}]}},
		{"metadata": {"name": "odd"}, "spec": {}, "status": {"addresses": [{"type": "InternalIP", "address": "1;\nnode\tx"}]}}]}`)))["status"]
	st := newStatus(s, s.Nodes, map[*engine.Node]answer.Answer{s.Nodes[0]: api}, nil, time.Now())
	require.Len(t, st.Machines, 5, "m1 and w1 of the layout, and three more")
	assert.Equal(t, StateReady, st.Machines[0].State)
	assert.Equal(t, StateOutside, st.Machines[1].State)
	assert.Equal(t, "paictl cluster up adds it to the cluster; paictl node remove HOST removes it from the layout", st.Machines[1].Hint)
	remove := "; to remove it: list it in layout.yaml, then run paictl node remove "
	assert.Equal(t, []MachineStatus{
		{Host: "m3", Address: "10.0.0.3", Roles: []string{"master"}, State: StateUnlisted, Message: "not in layout.yaml",
			Hint: "to keep it, where paictl has joined it: paictl node add m3=10.0.0.3 --role master" + remove + "m3"},
		{Host: "odd", Roles: []string{}, State: StateUnlisted, Message: "not in layout.yaml, and not Ready",
			Hint: "to keep it, where paictl has joined it: paictl node add odd=ADDRESS" + remove + "odd"},
		{Host: "w9", Address: "10.0.0.99", Roles: []string{}, State: StateUnlisted, Message: "not in layout.yaml, and not Ready", Cordoned: true,
			Hint: "to keep it, where paictl has joined it: paictl node add w9=10.0.0.99" + remove + "w9"},
	}, st.Machines[2:])

	st = newStatus(s, s.Nodes[:1], map[*engine.Node]answer.Answer{s.Nodes[0]: api}, nil, time.Now())
	assert.Len(t, st.Machines, 1, "with --limit, the machines that were asked for")
}

func TestStatusSaysWhoCordonedAMachine(t *testing.T) {
	s := preflightSpec(t, 1)
	of := func(name, spec, mark string) MachineStatus {
		annotations, err := json.Marshal(map[string]string{"a": "b", actionsv1.MarkAnnotation: mark})
		require.NoError(t, err)
		api := sectionsOf([]byte("@@ status\nmember\tyes\napi\tup\t\n" + nodeRows(t, `{"items": [{"metadata": {"name": "`+name+`", "annotations": `+string(annotations)+`}, "spec": `+spec+`, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`)))["status"]
		all := newStatus(s, s.Nodes, map[*engine.Node]answer.Answer{s.Nodes[0]: api}, nil, time.Now()).Machines
		return all[slices.IndexFunc(all, func(m MachineStatus) bool { return m.Host == name })]
	}
	const mark = `{"by":{"kind":"person","name":"root"},"reason":"a \"fan\"\nis\tloud"}`
	for _, name := range []string{"m1", "unlisted"} {
		m := of(name, `{"unschedulable": true}`, mark)
		assert.True(t, m.Cordoned, name)
		assert.Equal(t, "cordoned by root: a \"fan\" is loud", actionsv1.Cordoned(m.CordonedBy, m.CordonReason), name)
		m = of(name, `{}`, mark)
		assert.False(t, m.Cordoned, name)
		assert.Empty(t, m.CordonedBy+m.CordonReason, "kubectl uncordon leaves the mark")
		m = of(name, `{"unschedulable": true}`, "no JSON")
		assert.True(t, m.Cordoned, name)
		assert.Empty(t, m.CordonedBy+m.CordonReason, name)
	}
}

func TestStatusSaysWhichGPUsAreSick(t *testing.T) {
	s := preflightSpec(t, 1)
	of := func(status string) MachineStatus {
		api := sectionsOf([]byte("@@ status\nmember\tyes\napi\tup\t\n" + nodeRows(t, `{"items": [{"metadata": {"name": "m1"}, "spec": {}, "status": {"conditions": [
			{"type": "Ready", "status": "True"}, {"type": "EtcdIsVoter", "status": "True"}, {"type": "GPUsUnhealthy", "status": "`+status+`", "message": "GPU 3: XID 79: it has fallen off the bus\nGPU 5: \"lost\""}]}}]}`)))["status"]
		return newStatus(s, s.Nodes, map[*engine.Node]answer.Answer{s.Nodes[0]: api}, nil, time.Now()).Machines[0]
	}
	sick := of("True")
	assert.Equal(t, StateReady, sick.State)
	assert.Equal(t, []string{"GPUsUnhealthy"}, sick.Pressure)
	assert.Equal(t, `GPU 3: XID 79: it has fallen off the bus; GPU 5: "lost"`, sick.Message)
	api := sectionsOf([]byte("@@ status\nmember\tyes\napi\tup\t\n" + nodeRows(t, `{"items": [{"metadata": {"name": "m1"}, "spec": {}, "status": {"conditions": [
		{"type": "Ready", "status": "True"}, {"type": "GPUsUnhealthy", "status": "True", "message": "GPU 3: lost"},
		{"type": "GPUDriverMissingAtNextBoot", "status": "True", "message": "no module: build it; then restart"}]}}]}`)))["status"]
	both := newStatus(s, s.Nodes, map[*engine.Node]answer.Answer{s.Nodes[0]: api}, nil, time.Now()).Machines[0]
	assert.Equal(t, []string{"GPUsUnhealthy", "GPUDriverMissingAtNextBoot"}, both.Pressure)
	assert.Equal(t, "GPU 3: lost; no module: build it; then restart", both.Message)
	well := of("False")
	assert.Empty(t, well.Pressure)
	assert.Empty(t, well.Message)
}

func nodeRows(t *testing.T, nodes string) string {
	t.Helper()
	_, after, found := strings.Cut(statusScript, "s_node='")
	require.True(t, found)
	text, _, _ := strings.Cut(after, "'")
	text = "{{range .items}}" + text + "{{end}}"
	var data any
	require.NoError(t, json.Unmarshal([]byte(nodes), &data))
	var out strings.Builder
	require.NoError(t, template.Must(template.New("nodes").Parse(text)).Execute(&out, data))
	return out.String()
}

func TestStatusKnowsADownAPIFromNone(t *testing.T) {
	s := preflightSpec(t, 1)
	answers := map[*engine.Node]answer.Answer{}
	for _, n := range s.Nodes {
		answers[n] = sectionsOf([]byte("@@ status\nmember\tyes\napi\tdown\tconnection refused\n"))["status"]
	}
	st := newStatus(s, s.Nodes, answers, nil, time.Now())
	assert.Equal(t, "down", st.API)
	assert.Equal(t, "connection refused", st.APIMessage)
	assert.Equal(t, StateUnknown, st.Machines[1].State)
}

// Each call of kubectl waits until another call has started. The test therefore hangs if the calls are sequential.
func TestStatusAsksTheAPIAllItsQuestionsAtATime(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"bin", "etc/kubernetes"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/kubernetes/admin.conf"), []byte("    server: https://10.0.0.1:6443\n"), 0o600))
	for _, fifo := range []string{"first", "second"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(root, fifo), 0o600))
	}
	runnable.Write(t, filepath.Join(root, "bin/kubectl"), `#!/bin/sh
cd "$PAICTL_ROOT"
printf . >>calls
case "$*" in
*readyz*) echo x >first; read -r _ <second; [ ! -e down ] || { echo "connection refused" >&2; exit 1; } ;;
*"get nodes,deployments,daemonsets -A"*) read -r _ <first; echo x >second; printf 'node\tm1\nworkload\tcoredns\t2\t2\n' ;;
*"get pods"*) printf 'pod\tetcd\tm1\n' ;;
*) exit 9 ;;
esac
`)
	status := func(brief bool) (answer.Answer, int) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", engine.PreludeScript+statusScript+statusCall(preflightSpec(t, 1), preflightSpec(t, 1).Nodes[0], brief))
		cmd.Env = []string{"PAICTL_ROOT=" + root, "PATH=" + filepath.Join(root, "bin") + ":/usr/bin:/bin"}
		out, err := cmd.Output()
		require.NoError(t, err)
		a, err := answer.Parse(out)
		require.NoError(t, err, "%s", out)
		calls, err := os.ReadFile(filepath.Join(root, "calls"))
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(root, "calls")))
		return a, len(calls)
	}
	a, calls := status(false)
	assert.Equal(t, 3, calls)
	assert.Equal(t, "up", a.Value("api"))
	assert.Equal(t, "https://10.0.0.1:6443", a.Value("server"))
	assert.NotEmpty(t, a.Value("kernel"), "what the machine says of itself")
	for _, kind := range []string{"node", "pod", "workload"} {
		assert.Len(t, a.All(kind), 1, kind)
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "down"), nil, 0o600))
	a, _ = status(false)
	f, ok := a.Row("api")
	require.True(t, ok)
	assert.Equal(t, []string{"down", "connection refused"}, f)
}

// Like awk itself, the stub of awk stops at a file that it can't open.
func TestACertificateThatCannotBeReadHidesNoOther(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"apiserver", "bad", "ca"} {
		file := filepath.Join(root, "etc/kubernetes/pki", name+".crt")
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(certificate(t, name, time.Now().Add(time.Hour))), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "bin"), 0o755))
	awk, err := exec.LookPath("awk")
	require.NoError(t, err)
	runnable.Write(t, filepath.Join(root, "bin/awk"), "#!/bin/sh\ncase \"$*\" in *n=bad*) exit 2 ;; esac\nexec "+awk+" \"$@\"\n")
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", engine.PreludeScript+statusScript+"CONTROL_PLANE=1\ns_certs\n")
	cmd.Env = []string{"PAICTL_ROOT=" + root, "PATH=" + filepath.Join(root, "bin") + ":/usr/bin:/bin"}
	out, err := cmd.Output()
	require.NoError(t, err)
	a, err := answer.Parse(out)
	require.NoError(t, err)
	var names []string
	for _, f := range a.All("cert") {
		names = append(names, f[0])
	}
	assert.Equal(t, []string{"apiserver", "ca"}, names)
}

func TestAListOfMachinesAsksTheAPIOnce(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"bin", "etc/kubernetes"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/kubernetes/admin.conf"), []byte("    server: https://10.0.0.1:6443\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/kubernetes/kubelet.conf"), nil, 0o600))
	for _, name := range []string{"kubelet", "containerd"} {
		runnable.Write(t, filepath.Join(root, "bin", name), "#!/bin/sh\necho x >>\"$PAICTL_ROOT/versions\"\n")
	}
	rows := nodeRows(t, `{"items":[{"metadata":{"name":"m1"},"status":{"nodeInfo":{"kubeletVersion":"v1.36.3","containerRuntimeVersion":"containerd://2.4.2"},"conditions":[{"type":"Ready","status":"True"}]}}]}`)
	require.NoError(t, os.WriteFile(filepath.Join(root, "rows"), []byte(rows), 0o600))
	runnable.Write(t, filepath.Join(root, "bin/kubectl"), `#!/bin/sh
cd "$PAICTL_ROOT"
printf . >>calls
echo "Warning: something is deprecated" >&2
case "$*" in
*"get nodes"*) [ ! -e down ] || exit 1; cat rows ;;
*readyz*) echo "connection refused" >&2; exit 1 ;;
*) exit 9 ;;
esac
`)
	runnable.Write(t, filepath.Join(root, "bin/systemctl"), "#!/bin/sh\n[ \"$2\" = kubelet.service ] && echo active && exit 0\necho inactive\nexit 3\n")
	s := preflightSpec(t, 1)
	list := func() (answer.Answer, MachineStatus) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", engine.PreludeScript+statusScript+statusCall(s, s.Nodes[0], true))
		cmd.Env = []string{"PAICTL_ROOT=" + root, "PATH=" + filepath.Join(root, "bin") + ":/usr/bin:/bin"}
		out, err := cmd.Output()
		require.NoError(t, err)
		a, err := answer.Parse(out)
		require.NoError(t, err, "%s", out)
		return a, newStatus(s, s.Nodes[:1], map[*engine.Node]answer.Answer{s.Nodes[0]: a}, nil, time.Now()).Machines[0]
	}
	a, m := list()
	assert.Equal(t, "up", a.Value("api"))
	assert.Empty(t, a.All("cert"))
	assert.Equal(t, StateReady, m.State)
	assert.Equal(t, &ProgramStatus{Version: "v1.36.3", State: "active"}, m.Kubelet)
	assert.Equal(t, &ProgramStatus{Version: "v2.4.2", State: "inactive"}, m.Containerd)
	calls, err := os.ReadFile(filepath.Join(root, "calls"))
	require.NoError(t, err)
	assert.Len(t, calls, 1)
	assert.NoFileExists(t, filepath.Join(root, "versions"), "programs that take a tenth of a second to start")

	require.NoError(t, os.WriteFile(filepath.Join(root, "down"), nil, 0o600))
	a, m = list()
	f, _ := a.Row("api")
	require.Len(t, f, 2)
	assert.Equal(t, "down", f[0])
	assert.Contains(t, f[1], "connection refused")
	assert.Equal(t, "the API server does not answer", m.Message)
	assert.Equal(t, &ProgramStatus{State: "active"}, m.Kubelet)
}
