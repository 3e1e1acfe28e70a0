// Package task runs one task of a job, from the container's start to its exit code. In: the spec, the environment of
// the pod, signals. Out: the program's output, files for it, an exit code and a report.
package task

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/node/podapi"
	"github.com/openpai/paictl/pkg/runtime/barrier"
	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/journal"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/plugin"
	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Options are the inputs of the runtime.
type Options struct {
	Environ        []string
	Stdout, Stderr io.Writer
	Self           string // the runtime's program
	// Root is a prefix of all paths. It is "" except in tests.
	Root string
	Now  func() time.Time
	// GPUs is the folder with the agent's notice about the container's GPUs. "" means notice.Folder.
	GPUs string
	// Settle is how long to wait for the agent's notice after a program has failed. 0 means one and a half seconds.
	Settle time.Duration
}

// defaultGrace is the default grace period.
const defaultGrace = 30 * time.Second

type task struct {
	Options
	journal  *journal.Journal
	signals  *process.Signals
	reaper   *process.Reaper
	spec     *spec.Spec
	layout   *env.Layout
	role     *spec.Role
	environ  []string // the environment of programs
	dir      string   // the folder in which commands run
	userTail *process.Tail
	streams  []*process.Stream // the streams of the program
	oomKills int               // before the program started
}

// Run runs the task and returns the container's exit code.
func Run(ctx context.Context, o Options) (code int) {
	t := &task{Options: o, userTail: process.NewTail(maxLog)}
	t.journal = journal.Open(o.Stderr, t.path(journal.File), o.Now)
	t.signals = process.Listen(ctx, t.journal.Printf)
	defer t.signals.Close()
	defer func() {
		if r := recover(); r != nil {
			t.journal.Notef("%s", debug.Stack())
			t.journal.Printf("internal error of the runtime: %v", r)
			code = t.finish(result{code: exit.Unknown, own: true})
		}
	}()
	reaper, err := process.NewReaper()
	if err != nil {
		return t.finish(t.failed(err))
	}
	t.reaper = reaper
	r := t.phases(t.signals.Context())
	for _, s := range t.streams {
		_ = s.Close() // errors were reported by Drain
	}
	reaper.Stop()
	return t.finish(r)
}

func (t *task) path(name string) string { return filepath.Join(t.Root, name) }

type result struct {
	code    int
	stopped bool
	own     bool // the code is the runtime's, not a program's
	setup   bool // the job's own program never ran
}

// failed logs an error and returns the task's result.
func (t *task) failed(err error) result {
	t.journal.Printf("%v", err)
	code := exit.Code(err)
	return result{code: code, own: exit.IsRuntimeCode(err), stopped: t.signals.Context().Err() != nil}
}

// unprepared returns the result of an error before the program's start.
func (t *task) unprepared(err error) result {
	r := t.failed(err)
	r.setup = true
	return r
}

// phases runs the steps of a task in order.
func (t *task) phases(ctx context.Context) result {
	if err := t.prepare(ctx); err != nil {
		return t.unprepared(err)
	}
	plugins, err := plugin.New(t.role.Plugins, t.pluginRun())
	if err == nil {
		err = plugins.Pre(ctx)
	}
	if err != nil {
		return t.unprepared(err)
	}
	r, err := t.program()
	switch {
	case err != nil:
		return t.failed(err)
	case r.code != 0 || r.stopped:
		return r
	}
	if err := plugins.Post(ctx); err != nil {
		return t.failed(err)
	}
	return r
}

// prepare prepares the program's environment. It downloads the code while the task waits for the other tasks.
func (t *task) prepare(ctx context.Context) error {
	s, err := spec.Load(t.path(spec.File))
	if err != nil {
		return fmt.Errorf("the job's spec can't be read: %w", err)
	}
	t.spec = s
	self, err := t.self()
	if err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	fetched := make(chan error, 1)
	go func() {
		err := t.fetch(ctx)
		fetched <- err
		if err != nil {
			cancel() // waiting for the code is useless now
		}
	}()
	p, err := t.peers(waiting, self)
	if waiting.Err() != nil && ctx.Err() == nil {
		return <-fetched
	}
	if err != nil {
		return err
	}
	if t.layout, err = env.New(s, p, self); err != nil {
		return err
	}
	t.role = t.layout.Role()
	if err := t.checkPorts(); err != nil {
		return err
	}
	if err := t.writeFiles(); err != nil {
		return err
	}
	return <-fetched
}

func (t *task) self() (env.Self, error) {
	text := t.get(spec.TaskVariable)
	if text == "" { // the job was submitted by an earlier paictl
		text = strings.Join([]string{t.get("FC_TASKROLE_NAME"), t.get("FC_TASK_INDEX"), t.get("FC_FRAMEWORK_ATTEMPT_ID"), t.get("FC_TASK_ATTEMPT_ID")}, "/")
	}
	me, err := spec.ParseTask(text)
	if err != nil {
		return env.Self{}, fmt.Errorf("the environment doesn't say which task of a job this is: %w", err)
	}
	s := env.Self{
		Role: me.Role, Index: me.Index, Attempt: me.Attempt, TaskAttempt: me.TaskAttempt,
		PodIP: t.get("PAI_POD_IP"), HostIP: t.get("PAI_HOST_IP"), PodUID: t.get("FC_POD_UID"),
	}
	s.WorkDir, err = os.Getwd()
	if err != nil {
		return s, fmt.Errorf("the working directory: %w", err)
	}
	return s, nil
}

// get returns a variable of the container's environment, or "".
func (t *task) get(name string) string {
	value := ""
	for _, e := range t.Environ {
		if len(e) > len(name) && e[:len(name)] == name && e[len(name)] == '=' {
			value = e[len(name)+1:]
		}
	}
	return value
}

// peers waits for the addresses of the job's other tasks. It returns nil if the job has only one task, or if its tasks don't
// wait for each other. The addresses of such tasks aren't published, because they would change with each retry. Only the names
// of tasks don't change.
func (t *task) peers(ctx context.Context, self env.Self) (*peers.Peers, error) {
	if t.spec.Tasks() <= 1 || !t.spec.Gang {
		return nil, nil //nolint:nilnil // the job has no peers
	}
	source, err := t.source(self)
	if err != nil {
		return nil, exit.With(exit.BarrierPermanent, err)
	}
	w := &barrier.Wait{
		Source: source, Attempt: self.Attempt, Role: self.Role, Index: self.Index, PodIP: self.PodIP,
		Timeout: time.Duration(t.spec.BarrierTimeoutSec) * time.Second, Log: t.journal.Printf,
	}
	began := t.Now()
	p, err := w.For(ctx)
	if err == nil {
		t.journal.Notef("all %d tasks have an address, after %s", t.spec.Tasks(), t.Now().Sub(began).Round(time.Millisecond))
	}
	return p, err
}

// source returns the source of the addresses of the job's tasks.
func (t *task) source(self env.Self) (barrier.Source, error) {
	if t.spec.PeersURL != "" {
		return &barrier.Controller{URL: t.spec.PeersURL + "/" + t.spec.Framework, Token: t.get(spec.PeersTokenVariable), Attempt: self.Attempt}, nil
	}
	namespace, name := t.get("FC_FRAMEWORK_NAMESPACE"), t.get("FC_CONFIGMAP_NAME")
	if name == "" {
		name = t.spec.Framework + "-attempt"
	}
	return barrier.InCluster(t.get, t.path(podapi.Folder), namespace, name)
}
