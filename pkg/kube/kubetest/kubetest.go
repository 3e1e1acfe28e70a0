// Package kubetest gives tests the API server of a bundle. In: a bundle, named by PAICTL_TEST_BUNDLE or PAICTL_BUNDLE or in the user's cache. Out: a
// connection to a real, empty cluster. Without a bundle, the test is skipped and reports that.
//
// A package that uses kubetest contains
//
//	func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }
package kubetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/cluster/sandbox"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/test/tier"
)

// M runs the tests of a package, and then stops the servers that the tests started.
type M struct{ m *testing.M }

// Wrap wraps the argument of TestMain, so that Run can stop the servers.
func Wrap(m *testing.M) M {
	wrapped = true
	return M{m}
}

// Run runs the tests, stops the servers, and returns the exit code.
func (m M) Run() int {
	code := m.m.Run()
	for _, s := range []*server{&bare, &full} {
		if err := s.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "kubetest:", err)
			code = max(code, 1)
		}
	}
	return code
}

// The tests of a package share these servers, because starting a server takes seconds.
var (
	wrapped    bool
	bare, full server
)

// Nodes is the number of nodes in a cluster of StartNodes.
const Nodes = 3

// Start returns a cluster of only etcd and an API server, which all tests of the package share. It is one of Serve's clusters, or a cluster that ends
// with the test binary. No controller runs: a deleted namespace stays "Terminating" forever, deployments create no pods, and service accounts don't
// exist. Tests use their own names, or remove the objects that they created. Kubeconfig returns the kubeconfig of this cluster.
func Start(t testing.TB) *kube.Cluster {
	t.Helper()
	return bare.start(t, 0)
}

// StartNodes returns a cluster with controllers, the scheduler and Nodes simulated nodes, which only pretend to run pods. The cluster needs more
// memory and processor time than Start.
func StartNodes(t testing.TB) *kube.Cluster {
	t.Helper()
	return full.start(t, Nodes)
}

// Kubeconfig returns the path of a kubeconfig for Start's cluster, for tests that run commands.
func Kubeconfig(t testing.TB) string {
	t.Helper()
	bare.start(t, 0)
	return bare.sandbox.Kubeconfig()
}

// PriorityClasses creates the priority classes of jobs, as the chart cluster-configuration does. Without them no pod of a job can be created.
func PriorityClasses(t testing.TB, c *kube.Cluster) {
	t.Helper()
	for i, name := range v1.Priorities() {
		_, err := c.Client.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: v1.PriorityClass(name)}, Value: int32(100 - i)}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

type server struct {
	once    sync.Once
	sandbox *sandbox.Sandbox
	cluster *kube.Cluster
	err     error
	done    chan struct{} // closed to end the thread that the programs depend on
	// release returns a borrowed server to the pool.
	release func()
}

func (s *server) start(t testing.TB, nodes int) *kube.Cluster {
	t.Helper()
	tier.More(t, "an API server")
	if !wrapped {
		t.Fatal("the package needs a TestMain with kubetest.Wrap")
	}
	dir := bundleFor(t, nodes)
	s.once.Do(func() {
		if pool := os.Getenv(poolVariable); pool != "" && nodes == 0 {
			s.err = s.borrow(t.Context(), pool)
			return
		}
		// Another program may take a port between its choice and its use, so this tries twice.
		for range 2 {
			if s.err = s.serve(dir, nodes); s.err == nil {
				return
			}
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Cleanup(func() {
		// If a program of the cluster has exited, for example because it ran out of memory, that may explain the failure of the test.
		if !t.Failed() {
			return
		}
		if ended, err := s.sandbox.Ended(); err != nil || len(ended) > 0 {
			t.Logf("programs of the control plane have ended: %s (%v)", strings.Join(ended, "\n"), err)
		}
	})
	return s.cluster
}

// bundleFor returns the folder of a bundle with the programs of a cluster. If nodes is 0, the bundle of hack/controlplane is enough.
func bundleFor(t testing.TB, nodes int) string {
	t.Helper()
	if nodes > 0 {
		return bundletest.ControlPlane(t)
	}
	dir, _ := bundletest.Need(t, bundle.KindTool, "kube-apiserver")
	return dir
}

// serve starts the programs from a thread that doesn't exit. The kernel kills the programs when this thread exits, so they also end when the test
// binary is killed.
func (s *server) serve(folder string, nodes int) error {
	dir, err := os.MkdirTemp("", "paictl-kubetest-")
	if err != nil {
		return err
	}
	ready := make(chan error)
	done := make(chan struct{})
	s.done = done
	go func() {
		runtime.LockOSThread()
		var err error
		s.sandbox, err = sandbox.ServeAPI(context.Background(), sandbox.Options{Dir: dir, Name: "test", Bundle: folder, Hosts: nodes})
		ready <- err
		<-done
	}()
	if err := <-ready; err != nil {
		return errors.Join(err, s.stop())
	}
	s.cluster, err = kube.Open(kube.Options{Kubeconfig: s.sandbox.Kubeconfig()})
	return err
}

func (s *server) stop() error {
	if s.release != nil {
		s.release()
	}
	if s.done == nil {
		return nil
	}
	defer func() { s.done = nil }()
	defer close(s.done)
	if s.sandbox == nil {
		return nil
	}
	return s.sandbox.Down(context.Background())
}
