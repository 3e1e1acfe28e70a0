package parity

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	historyserver "github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/job/jobtest"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/node/logstore/agents"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/test/programs"
)

// machine is a machine on which a real log-manager runs.
type machine struct {
	name, pods, groups, token, address string
	port                               int
}

const containerID = "6f00000000000000000000000000000000000000000000000000000000000001"

func newMachine(t *testing.T) *machine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &machine{name: "n1", pods: t.TempDir(), groups: t.TempDir(), token: "sesame", address: l.Addr().String(), port: l.Addr().(*net.TCPAddr).Port}
	require.NoError(t, l.Close())
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(m.token), 0o600))
	programs.Start(t, "pai-logs", "--listen="+m.address, "--token-file="+file, "--folder="+t.TempDir(), "--pods="+m.pods, "--cgroup-folder="+m.groups)
	return m
}

// holds adds a container of a pod to the machine, with the counters of the container's control group.
func (m *machine) holds(t *testing.T, p *corev1.Pod) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(m.pods, p.Namespace+"_"+p.Name+"_"+string(p.UID), "app"), 0o700))
	slice := "kubepods-burstable-pod" + strings.ReplaceAll(string(p.UID), "-", "_") + ".slice"
	group := filepath.Join(m.groups, "kubepods.slice", "kubepods-burstable.slice", slice, "cri-containerd-"+containerID+".scope")
	require.NoError(t, os.MkdirAll(group, 0o700))
	for name, text := range map[string]string{
		filepath.Join(m.groups, "cgroup.controllers"): "cpu memory\n",
		filepath.Join(group, "cpu.stat"):              "usage_usec 5000000\n",
		filepath.Join(group, "memory.current"):        "314572800\n",
		filepath.Join(group, "memory.stat"):           "inactive_file 104857600\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// runs creates a running pod.
func runs(t *testing.T, c *kube.Cluster, namespace string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	pods := c.Client.CoreV1().Pods(namespace)
	no := false
	p.Spec.AutomountServiceAccountToken = &no
	status := p.Status
	p, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	p.Status = status
	p.Status.Phase = corev1.PodRunning
	p, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	return p
}

// agentPod returns the pod of the machine's log-manager.
func (m *machine) agentPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "log-manager-1", Labels: map[string]string{"app.kubernetes.io/name": logapi.Service}},
		Spec:   corev1.PodSpec{NodeName: m.name, Containers: []corev1.Container{{Name: "log-manager", Image: "pai-logs:1", Ports: []corev1.ContainerPort{{Name: logapi.PortName, ContainerPort: int32(m.port)}}}}},
		Status: corev1.PodStatus{PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}}}}
}

// taskPod returns the pod of a job's task on the machine.
func (m *machine) taskPod(c *kube.Cluster, t *testing.T, user, job string) *corev1.Pod {
	t.Helper()
	f := jobtest.Framework(t, c, fv1.ObjectName(user, job))
	role := f.Spec.TaskRoles[0].Name
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fv1.PodName(f.Name, role, 0), Labels: map[string]string{fv1.LabelFramework: f.Name, fv1.LabelTaskRole: role, fv1.LabelTaskIndex: "0"}},
		Spec:   corev1.PodSpec{NodeName: m.name, Containers: []corev1.Container{{Name: "app", Image: "busybox:1"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://" + containerID, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}}}
}

// The resources that a job uses must be shown in the same way to an operator, to the job's owner, and to other people who have signed in. The test
// uses a real log-manager, the job controller's own API, and the server.
func TestWhatAJobUsesIsShownTheSameBothWays(t *testing.T) {
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	d, err := people.Open(cluster.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	m := newMachine(t)
	store, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	all := historyserver.New(historyserver.Options{Store: store, Ready: func(context.Context) error { return nil }, Metrics: prometheus.NewRegistry(), Token: func() string { return jobtest.Token },
		Use: agents.New(cluster.Client.CoreV1().Pods(kube.SystemNamespace), func() string { return m.token }), Log: slog.New(slog.DiscardHandler)}).Handler()
	b := &both{t: t, cluster: cluster, home: t.TempDir(), kubeconfig: jobtest.Front(t, cluster, jobtest.Services{api.Service: all}), server: servertest.Start(t, cluster, servertest.Options{History: all})}
	b.server.Group("closed", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "default"}} })
	b.server.Group("open", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "default", SeeJobs: true}} })
	for name, group := range map[string]string{"olga": "closed", "cyril": "closed", "pia": "open"} {
		b.signIn(name, group)
	}
	answer := b.server.Submit(b.server.SignIn("olga"), "busy", "default")
	require.Equal(t, http.StatusAccepted, answer.Status, answer.Body)
	_, err = cluster.Client.CoreV1().ServiceAccounts(kube.SystemNamespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	m.holds(t, runs(t, cluster, kube.JobNamespace, m.taskPod(cluster, t, "olga", "busy")))
	runs(t, cluster, kube.SystemNamespace, m.agentPod())
	b.server.Eventually("log-manager answers", func() bool {
		c, err := net.DialTimeout("tcp", m.address, time.Second)
		return err == nil && c.Close() == nil
	})

	top := func(args ...string) (operator, owner string) {
		line := append([]string{"job", "top"}, args...)
		return b.print(line, "KUBECONFIG="+b.kubeconfig, "PAICTL_USER=olga"), b.print(line, "XDG_CONFIG_HOME="+b.home, "PAICTL_SERVER=olga")
	}
	operator, owner := top("busy")
	assert.Regexp(t, `(?m)^\S+\[0\] +n1 +0\.00 +- +200\.0 MiB +- +0 +-$`, owner)
	assert.Equal(t, operator, owner)
	operator, owner = top("busy", "-o", "json")
	assert.Contains(t, owner, `"memoryBytes": `+strconv.Itoa(200<<20))
	assert.Contains(t, owner, `"cpu": 0`)
	assert.Equal(t, operator, owner)

	peer := b.print([]string{"job", "top", "olga/busy"}, "XDG_CONFIG_HOME="+b.home, "PAICTL_SERVER=pia")
	assert.Contains(t, peer, "200.0 MiB", "who may see the job sees what it uses")
	stranger := b.print([]string{"job", "top", "olga/busy"}, "XDG_CONFIG_HOME="+b.home, "PAICTL_SERVER=cyril")
	assert.NotContains(t, stranger, "MiB")
	assert.Equal(t, strings.ReplaceAll(b.print([]string{"job", "top", "olga/none"}, "XDG_CONFIG_HOME="+b.home, "PAICTL_SERVER=cyril"), "none", "busy"), stranger, "as if there were none")
}
