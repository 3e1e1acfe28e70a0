package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/kube"
)

// poolVariable names the environment variable that contains the folder of the API servers that Serve runs. Packages that use Start borrow one of the
// servers, one package after the other, and get it in its initial state.
const poolVariable = "PAICTL_TEST_SERVERS"

// Serve runs n API servers of a bundle until ctx ends. Test packages borrow these servers. Serve calls ready when all servers have started.
func Serve(ctx context.Context, dir, bundle string, n int, ready func()) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	unlock, err := flock(filepath.Join(dir, "lock"), syscall.LOCK_NB)
	if err != nil {
		return fmt.Errorf("API servers already run in %s: %w", dir, err)
	}
	defer unlock()
	runtime.LockOSThread() // the programs end when the thread ends
	for i := range n {
		slot := filepath.Join(dir, strconv.Itoa(i))
		if err := os.RemoveAll(slot); err != nil {
			return err
		}
		s, err := sandbox.ServeAPI(ctx, sandbox.Options{Dir: slot, Name: "test", Bundle: bundle})
		if s != nil {
			defer func() { _ = s.Down(context.WithoutCancel(ctx)) }()
		}
		if err == nil {
			err = note(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("API server %d: %w", i, err)
		}
	}
	if err := remove(dir, n); err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	return nil
}

// remove deletes the folders of the servers from number n on. An earlier run with more servers left them.
func remove(dir string, n int) error {
	for i := n; ; i++ {
		slot := filepath.Join(dir, strconv.Itoa(i))
		if _, err := os.Stat(slot); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := os.RemoveAll(slot); err != nil {
			return err
		}
	}
}

// first is the initial state of a server, which a reset restores.
type first struct {
	Entries []entry  `json:"entries"`
	Groups  []string `json:"groups"` // the groups of the API
}

func firstFile(s *sandbox.Sandbox) string { return filepath.Join(s.Dir(), "first.json") }

// note waits until a new server has created its initial objects, and writes the server's state to a file.
func note(ctx context.Context, s *sandbox.Sandbox) error {
	c, err := kube.Open(kube.Options{Kubeconfig: s.Kubeconfig()})
	if err != nil {
		return err
	}
	e, err := etcdOf(s)
	if err != nil {
		return err
	}
	const quiet = 2 * time.Second
	var state first
	for since := time.Now(); time.Since(since) < quiet; {
		entries, err := e.list(ctx, true)
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(kv entry) bool { return own(kv.Key) })
		if !reflect.DeepEqual(entries, state.Entries) {
			state.Entries, since = entries, time.Now()
		}
		time.Sleep(quiet / 10)
	}
	if state.Groups, err = groups(c); err != nil {
		return err
	}
	return state.write(firstFile(s))
}

func (f first) write(file string) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

func groups(c *kube.Cluster) ([]string, error) {
	list, err := c.Client.Discovery().ServerGroups()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, g := range list.Groups {
		for _, v := range g.Versions {
			out = append(out, v.GroupVersion)
		}
	}
	slices.Sort(out)
	return out, nil
}

// borrow waits for a server that no package uses, and resets it to its initial state.
func (s *server) borrow(ctx context.Context, dir string) error {
	box, release, err := take(ctx, dir)
	if err != nil {
		return err
	}
	s.release = release // the lock also ends with the process
	if s.cluster, err = kube.Open(kube.Options{Kubeconfig: box.Kubeconfig()}); err != nil {
		return err
	}
	b, err := os.ReadFile(firstFile(box))
	if err != nil {
		return err
	}
	var state first
	if err := json.Unmarshal(b, &state); err != nil {
		return err
	}
	e, err := etcdOf(box)
	if err != nil {
		return err
	}
	if state.Entries, err = e.reset(ctx, state.Entries); err != nil {
		return err
	}
	if err := state.write(firstFile(box)); err != nil {
		return err
	}
	s.sandbox = box
	return settled(ctx, s.cluster, state.Groups)
}

// take borrows a server of the pool. It returns the server and a function that ends the loan.
func take(ctx context.Context, dir string) (*sandbox.Sandbox, func(), error) {
	for {
		for i := 0; ; i++ {
			slot := filepath.Join(dir, strconv.Itoa(i))
			if _, err := os.Stat(slot); err != nil {
				if i == 0 {
					return nil, nil, fmt.Errorf("%s names no API servers: %w", poolVariable, err)
				}
				break
			}
			release, err := flock(filepath.Join(slot, "borrowed"), syscall.LOCK_NB)
			if errors.Is(err, syscall.EWOULDBLOCK) {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			s, err := sandbox.Load(slot, nil)
			return s, release, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// settled waits until the API has the groups of its initial state and the namespace that tests use.
func settled(ctx context.Context, c *kube.Cluster, want []string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		got, err := groups(c)
		if err == nil && slices.Equal(got, want) {
			_, err = c.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
			if err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server isn't back in its first state: it has %v, not %v: %w", got, want, errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// flock locks a file and returns a function that releases the lock.
func flock(file string, how int) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|how); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
