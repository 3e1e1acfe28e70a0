package scale

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
)

// archived is an SQL statement that inserts n completed jobs of a hundred users. It is faster than the archive's own code.
const archived = `INSERT INTO jobs (framework, uid, user_name, name, vc, priority, state, phrase, code, gpus, tasks, retries, submitted, started, completed, keywords, code_sha256)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
SELECT 'f' || i, 'u' || i, 'user' || (i %% 100), 'experiment-' || i, 'default', '', 'succeeded', '', 0, 8, 1, 0, i * 1000000, i * 1000000, i * 1000000, 'user' || (i %% 100), '' FROM n`

// BenchmarkJobList measures the processor time of "paictl job list", and of the programs that it sends requests to, for a page of 50 jobs. It
// measures with few jobs, and then with PAICTL_SCALE_FRAMEWORKS live jobs and PAICTL_SCALE_ARCHIVED jobs in the archive. If PAICTL_SCALE_BEFORE
// names another paictl, it measures that program, too.
func BenchmarkJobList(b *testing.B) {
	live, ended := number(b, "PAICTL_SCALE_FRAMEWORKS", 200), number(b, "PAICTL_SCALE_ARCHIVED", 1000)
	programs := paictls(b)
	w := newJobs(b)
	w.host = outside(b)
	w.start()
	require.NoError(b, w.submit("model", 1))
	w.waitEnded(1, 1)
	w.kill()
	w.copies("model", 0, 99)
	w.start()
	w.serves()
	w.lists(b, "few", programs)
	w.kill()
	w.fill(ended)
	w.copies("model", 99, live-1)
	w.start()
	w.serves()
	w.lists(b, "many", programs)
}

// fill inserts n jobs into the archive. It drops the indexes before and creates them afterwards, which is much faster than updating them.
func (w *jobsWorld) fill(n int) {
	w.t.Helper()
	db, err := sql.Open("sqlite", w.archive)
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, db.Close()) }()
	rows, err := db.QueryContext(w.t.Context(), "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'jobs' AND type = 'index' AND sql IS NOT NULL")
	require.NoError(w.t, err)
	var drop, create []string
	for rows.Next() {
		var name, text string
		require.NoError(w.t, rows.Scan(&name, &text))
		drop, create = append(drop, "DROP INDEX "+name), append(create, text)
	}
	require.NoError(w.t, errors.Join(rows.Err(), rows.Close()))
	for _, statement := range slices.Concat(drop, []string{fmt.Sprintf(archived, n)}, create) {
		_, err := db.ExecContext(w.t.Context(), statement)
		require.NoError(w.t, err, statement)
	}
}

// outside returns an address of this machine that an endpoint of a service may have, because it isn't a loopback address.
func outside(t testing.TB) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has only its loopback address, at which the API server reaches no service")
	return ""
}

// serves makes the controller the service to which paictl sends requests. The API server forwards requests only to the addresses of pods, so serves
// creates a pod with the address of the controller.
func (w *jobsWorld) serves() {
	w.t.Helper()
	host, port, err := net.SplitHostPort(strings.TrimPrefix(w.controller.url, "http://"))
	require.NoError(w.t, err)
	n, err := strconv.ParseInt(port, 10, 32)
	require.NoError(w.t, err)
	ctx, core, now, meta := w.t.Context(), w.c.Client.CoreV1(), int64(0), metav1.ObjectMeta{Name: api.Service}
	// The objects of an earlier controller are deleted first.
	_ = core.Services(kube.SystemNamespace).Delete(ctx, api.Service, metav1.DeleteOptions{})
	_ = core.Endpoints(kube.SystemNamespace).Delete(ctx, api.Service, metav1.DeleteOptions{})
	_ = core.Pods(kube.SystemNamespace).Delete(ctx, api.Service, metav1.DeleteOptions{GracePeriodSeconds: &now})
	p, err := core.Pods(kube.SystemNamespace).Create(ctx, &corev1.Pod{ObjectMeta: meta,
		Spec: corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "a", Image: "none"}}}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	p.Status.PodIP, p.Status.PodIPs = host, []corev1.PodIP{{IP: host}}
	_, err = core.Pods(kube.SystemNamespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	_, err = core.Services(kube.SystemNamespace).Create(ctx, &corev1.Service{ObjectMeta: meta,
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: api.PortName, Port: int32(n)}}}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = core.Endpoints(kube.SystemNamespace).Create(ctx, &corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // what the API server reads
		Addresses: []corev1.EndpointAddress{{IP: host, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: kube.SystemNamespace, Name: api.Service, UID: p.UID}}},
		Ports:     []corev1.EndpointPort{{Name: api.PortName, Port: int32(n)}}}}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// paictls returns the programs to measure. The keys are the suffixes of the names of their measurements.
func paictls(b *testing.B) map[string]string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "paictl")
	cmd := exec.CommandContext(b.Context(), "go", "build", "-o", path, "../../cmd/paictl")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(b, err, "%s", out)
	all := map[string]string{"": path}
	if before := os.Getenv("PAICTL_SCALE_BEFORE"); before != "" {
		all["/before"] = before
	}
	return all
}

// lists runs the command repeatedly with each paictl, and reports the processor time.
func (w *jobsWorld) lists(b *testing.B, name string, programs map[string]string) {
	b.Helper()
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	require.NoError(b, clientcmd.WriteToFile(w.c.Raw, kubeconfig))
	time.Sleep(10 * time.Second) // until the work of their start is done
	start, idle := time.Now(), usage()
	time.Sleep(10 * time.Second)
	for program, s := range usage() {
		idle[program] = (s - idle[program]) / time.Since(start).Seconds()
	}
	for label, program := range programs {
		b.Run(name+label, func(b *testing.B) {
			w.list(b, program, kubeconfig) // the first run fills connections and caches
			before, start, own := usage(), time.Now(), time.Duration(0)
			n := 0
			for b.Loop() {
				own += w.list(b, program, kubeconfig)
				n++
			}
			took, after := time.Since(start).Seconds(), usage()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(1000*own.Seconds()/float64(n), "cli-ms")
			for program, short := range map[string]string{"kube-apiserver": "apiserver", "etcd": "etcd", "pai-controller": "controller"} {
				b.ReportMetric(max(0, 1000*(after[program]-before[program]-took*idle[program])/float64(n)), short+"-ms")
			}
		})
	}
}

// list runs the command once, and returns the processor time of paictl.
func (w *jobsWorld) list(b *testing.B, program, kubeconfig string) time.Duration {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), program, "job", "list", "--all-users")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	require.NoError(b, err, "%s", out)
	require.NotContains(b, string(out[:min(len(out), 200)]), "not shown", "the controller answers")
	require.Equal(b, 52, strings.Count(string(out), "\n")) // a header, 50 jobs, and a line about further jobs
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
