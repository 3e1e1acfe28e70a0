package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// maxNodes is the maximum number of simulated nodes. Kubernetes itself is tested with this number.
const maxNodes = 5000

type apiState struct {
	Ports ports `json:"ports"`
	Nodes int   `json:"nodes"`
}

// UpAPI starts the control plane of a bundle as processes of this user on loopback, and simulates nodes with KWOK. If nodes is empty, it simulates
// opts.Hosts nodes without GPUs. In an existing sandbox, it starts missing programs, and changes the nodes to match the arguments.
func UpAPI(ctx context.Context, opts Options, nodes []Node) (*Sandbox, error) {
	opts.Progress = orDrop(opts.Progress)
	var err error
	if opts.Dir, err = absolute(opts.Dir); err != nil {
		return nil, err
	}
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("an API-only sandbox needs Linux, but this is %s", runtime.GOOS)
	}
	if len(nodes) == 0 {
		nodes = plainNodes(opts)
	}
	if len(nodes) == 0 || len(nodes) > maxNodes {
		return nil, invalid("give 1 to 5000 machines", "%d nodes can't be simulated", len(nodes))
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the sandbox's directory: %w", err)
	}
	unlock, err := lock(opts.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := openOrCreateAPI(opts)
	if err != nil {
		removeIfEmpty(opts.Dir)
		return nil, err
	}
	programs, version, err := s.findPrograms(programNames())
	if err != nil {
		removeIfEmpty(opts.Dir)
		return nil, err
	}
	return s, s.upAPI(ctx, programs, version, nodes)
}

func openOrCreateAPI(opts Options) (*Sandbox, error) {
	s := &Sandbox{dir: opts.Dir, progress: opts.Progress}
	var err error
	s.state, err = readState(opts.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.state = state{Version: stateVersion, Name: opts.Name, API: &apiState{}}
		if s.state.Name == "" {
			s.state.Name = DefaultName
		}
	case err != nil:
		return nil, err
	case s.state.API == nil:
		return nil, hint.Errorf("remove it first (paictl sandbox down --dir "+hint.Quote(opts.Dir)+"), or give another --dir",
			"the sandbox in %s has hosts; it can't be API-only", opts.Dir)
	}
	if opts.Bundle != "" {
		if s.state.Bundle, err = filepath.Abs(opts.Bundle); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Sandbox) upAPI(ctx context.Context, programs map[string]string, version string, nodes []Node) error {
	// Save the state before any program starts, so that Down can remove the sandbox after an interruption.
	if err := s.save(); err != nil {
		return err
	}
	if err := s.ensurePKI(); err != nil {
		return fmt.Errorf("make the certificates: %w", err)
	}
	s.lease = leaseFor(len(nodes))
	if err := s.runControlPlane(ctx, programs); err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	s.progress("simulating " + plural.Of(len(nodes), "node"))
	if err := syncNodes(ctx, client, version, nodes); err != nil {
		return fmt.Errorf("make the simulated nodes: %w", err)
	}
	s.state.API.Nodes = len(nodes)
	s.state.Hosts = nil
	for _, n := range nodes {
		s.state.Hosts = append(s.state.Hosts, Host{Name: n.Name, Address: n.Address, Kind: Simulated})
	}
	if err := s.save(); err != nil {
		return err
	}
	return waitReady(ctx, client, len(nodes))
}

func (s *Sandbox) findPrograms(names []string) (programs map[string]string, version string, err error) {
	dir := s.state.Bundle
	if dir == "" {
		dir = bundle.DefaultDir
	}
	b, err := bundle.Open(dir)
	if err != nil {
		return nil, "", err
	}
	found := map[string]string{}
	for _, name := range names {
		a, ok := b.Lookup(bundle.KindTool, name)
		if !ok {
			return nil, "", hint.Errorf("complete it: paictl bundle build -o "+hint.Quote(dir), "the bundle in %s has no %s to run here", dir, name)
		}
		if found[name], err = filepath.Abs(b.File(a)); err != nil {
			return nil, "", err
		}
	}
	return found, b.Manifest().Kubernetes, nil
}

// runControlPlane restarts all programs unless all of them are running. If another program now uses one of the ports, it chooses new ports.
func (s *Sandbox) runControlPlane(ctx context.Context, programs map[string]string) error {
	running, err := findProcesses(s.dir)
	if err != nil {
		return err
	}
	complete := true
	for _, name := range programNames() {
		complete = complete && len(running[name]) > 0
	}
	if complete && exists(s.Kubeconfig()) {
		return nil
	}
	if err := s.apiDown(ctx); err != nil {
		return err
	}
	if !s.state.API.Ports.free() {
		if s.state.API.Ports, err = choosePorts(s.dir); err != nil {
			return err
		}
		if err := s.save(); err != nil {
			return err
		}
	}
	client, ended, err := s.startAPI(ctx, programs)
	if err != nil {
		return err
	}
	if err := grantSimulator(ctx, client); err != nil {
		return fmt.Errorf("give the simulator its rights: %w", err)
	}
	for _, name := range programNames() {
		if ended[name] != nil {
			continue
		}
		if ended[name], err = s.launchProgram(name, programs[name]); err != nil {
			return err
		}
	}
	return nil
}

// startAPI starts etcd and the API server, and waits until the API is ready. It returns a channel for each program, which is closed when the
// program ends.
func (s *Sandbox) startAPI(ctx context.Context, programs map[string]string) (*kubernetes.Clientset, map[string]<-chan struct{}, error) {
	if err := s.writeKubeconfigs(); err != nil {
		return nil, nil, fmt.Errorf("write the kubeconfigs: %w", err)
	}
	s.progress(fmt.Sprintf("starting etcd and the Kubernetes API on 127.0.0.1:%d", s.state.API.Ports.API))
	ended := map[string]<-chan struct{}{}
	var err error
	for _, name := range bareNames() {
		if ended[name], err = s.launchProgram(name, programs[name]); err != nil {
			return nil, nil, err
		}
	}
	client, err := s.client()
	if err != nil {
		return nil, nil, err
	}
	return client, ended, s.waitAPI(ctx, client, ended)
}

// Ended returns the programs of an API-only sandbox that have ended, each with the last lines of its log.
func (s *Sandbox) Ended() ([]string, error) {
	running, err := findProcesses(s.dir)
	if err != nil {
		return nil, err
	}
	var ended []string
	for _, name := range programNames() {
		// A program without a log was never started.
		if b, err := os.ReadFile(s.programLog(name)); err == nil && len(running[name]) == 0 {
			ended = append(ended, name+lastLines(string(b), 5))
		}
	}
	return ended, nil
}

func (s *Sandbox) apiDown(ctx context.Context) error {
	running, err := findProcesses(s.dir)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for name, pids := range running {
		g.Go(func() error {
			end := syscall.SIGTERM
			if s.bound { // the data isn't used again
				end = syscall.SIGKILL
			}
			if err := s.signal(name, end); err != nil {
				return err
			}
			gone, err := pollFor(ctx, 5*time.Second, func() (bool, error) { return !slices.ContainsFunc(pids, alive), nil })
			if err != nil || gone {
				return err
			}
			if err := s.signal(name, syscall.SIGKILL); err != nil {
				return err
			}
			return poll(ctx, func() (bool, error) { return !slices.ContainsFunc(pids, alive), nil })
		})
	}
	return g.Wait()
}
