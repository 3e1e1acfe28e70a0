package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
	"github.com/openpai/paictl/pkg/ui/tui"
)

type fixed struct {
	mu      sync.Mutex
	cluster *status.Cluster
	changed chan struct{}
}

func (f *fixed) Current() *status.Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cluster
}

func (f *fixed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fixed) set(c *status.Cluster) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster = c
	close(f.changed)
	f.changed = make(chan struct{})
}

// actions responds like a cluster with one job, and records the calls. The test fails if Update calls an action directly.
type actions struct {
	t      *testing.T
	mu     sync.Mutex
	calls  []string
	refuse error
	hold   chan struct{} // not nil: works wait for it
}

func (a *actions) call(format string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if strings.Contains(string(debug.Stack()), "view.(*Model).Update(") {
		a.t.Errorf("Update did %s itself", fmt.Sprintf(format, args...))
	}
	a.calls = append(a.calls, fmt.Sprintf(format, args...))
	return a.refuse
}

func (a *actions) called() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.calls...)
}

func (a *actions) Tasks(_ context.Context, j *status.Job) (*job.Detail, error) {
	err := a.call("tasks %s", j.Title())
	d := &job.Detail{Row: j.Row}
	for i := range 3 {
		began := statustest.Now.Add(-time.Duration(90-i) * time.Minute)
		d.Tasks = append(d.Tasks, job.Task{TaskAttempt: api.TaskAttempt{Role: "worker", Index: int32(i), Node: fmt.Sprintf("gpu-%03d", i), Run: &began}, Phase: job.Running, IP: fmt.Sprintf("10.244.0.%d", i+7)})
	}
	return d, err
}

func (a *actions) Why(_ context.Context, j *status.Job) (*job.Why, error) {
	return &job.Why{Job: j.Title(), State: j.State, Sentence: "16 GPUs of a100 are missing", Remedy: []string{"wait for alice/train"}, Facts: []job.Fact{{What: "queue", Text: "3rd"}}, Log: []string{"step 1", "step 2"}}, a.call("why %s", j.Title())
}

func (a *actions) JobEvents(_ context.Context, j *status.Job) ([]api.Event, error) {
	return []api.Event{{Time: statustest.Now.Add(-time.Minute), Type: "Warning", Reason: "FailedScheduling", Object: "Pod/x", Message: "0/3 nodes", Count: 3}}, a.call("events %s", j.Title())
}

func (a *actions) JobLogs(ctx context.Context, j *status.Job, task string, out io.Writer) error {
	err := a.call("logs %s %s", j.Title(), task)
	for i := range 100 {
		fmt.Fprintf(out, "step %d\tloss=%d.5 \x1b[32mok\x1b[0m\x1b]0;title\a\n", i, 100-i)
	}
	fmt.Fprint(out, "10%\r50%\r100% done\n")
	if err == nil && a.hold != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

type noShell struct{ tea.ExecCommand }

func (a *actions) Shell(j *status.Job, task string) tea.ExecCommand {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, "shell "+j.Title()+" "+task) // it only makes the command
	return noShell{}
}

func (a *actions) StopJob(_ context.Context, j *status.Job) error {
	return a.call("stop %s", j.Title())
}
func (a *actions) RetryJob(_ context.Context, j *status.Job) error {
	return a.call("retry %s", j.Title())
}

func (a *actions) ServicePods(_ context.Context, s *status.Service) ([]Pod, error) {
	return []Pod{{Name: s.Name + "-0", Node: "gpu-000", State: "Running", Ready: true, Age: "3d"}, {Name: s.Name + "-1", Node: "gpu-001", State: "CrashLoopBackOff", Restarts: 7, Age: "2h", Message: "back-off 5m0s"}}, a.call("pods %s", s.Name)
}

func (a *actions) ServiceLogs(_ context.Context, s *status.Service, out io.Writer) error {
	fmt.Fprintln(out, "level=info msg=hello")
	return a.call("service logs %s", s.Name)
}

func (a *actions) work(ctx context.Context, out io.Writer, what string) error {
	err := a.call("%s", what)
	fmt.Fprintln(out, what+" begins")
	if a.hold != nil {
		select {
		case <-a.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	fmt.Fprintln(out, what+" ends")
	return err
}

func (a *actions) RestartService(ctx context.Context, s *status.Service, out io.Writer) error {
	return a.work(ctx, out, "restart "+s.Name)
}
func (a *actions) Cordon(_ context.Context, m string) error   { return a.call("cordon %s", m) }
func (a *actions) Uncordon(_ context.Context, m string) error { return a.call("uncordon %s", m) }
func (a *actions) Drain(ctx context.Context, m string, out io.Writer) error {
	return a.work(ctx, out, "drain "+m)
}

func (a *actions) MachineJournal(_ context.Context, m *status.Machine, out io.Writer) error {
	if err := a.call("journal %s", m.Name); err != nil {
		return err
	}
	return hint.Wrap(errors.New("the kubelet of "+m.Name+" doesn't show the journal"), "look there: ssh "+m.Address+" journalctl -f")
}

// driver presses keys, and runs the resulting commands as bubbletea does.
type driver struct {
	t      *testing.T
	m      *Model
	act    *actions
	source *fixed
	msgs   chan tea.Msg
	now    time.Time
}

func drive(t *testing.T, c *status.Cluster, w, h int, p tui.Palette) *driver {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	d := &driver{t: t, act: &actions{t: t}, source: &fixed{cluster: c, changed: make(chan struct{})}, msgs: make(chan tea.Msg, 100), now: statustest.Now.Add(5 * time.Second)}
	d.m = New(ctx, Options{Source: d.source, Actions: d.act, Palette: p, Now: func() time.Time { return d.now }})
	d.send(tea.WindowSizeMsg{Width: w, Height: h})
	d.run(d.m.Init())
	d.until(func() bool { return d.m.cluster != nil })
	d.settle()
	return d
}

func (d *driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		msg := cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for _, c := range batch {
				d.run(c)
			}
			return
		}
		select {
		case d.msgs <- msg:
		case <-d.m.ctx.Done():
		}
	}()
}

func (d *driver) send(msg tea.Msg) {
	_, cmd := d.m.Update(msg)
	_ = d.m.View() // bubbletea asks for it after each Update
	d.run(cmd)
}

// until handles messages until so returns true. The clock doesn't change.
func (d *driver) until(so func() bool) {
	d.t.Helper()
	end := time.After(20 * time.Second)
	for !so() {
		select {
		case msg := <-d.msgs:
			switch msg.(type) {
			case nil, secondMsg, spinMsg:
			default:
				d.send(msg)
			}
		case <-end:
			require.Fail(d.t, "it never came", d.m.View())
		}
	}
}

func (d *driver) settle() {
	d.t.Helper()
	d.until(func() bool {
		t, text := d.m.page().(*textPage)
		return d.m.pending == 0 && (!text || t.ended || d.act.hold != nil && len(t.lines) > 0)
	})
}

var named = map[string]tea.KeyType{"enter": tea.KeyEnter, "esc": tea.KeyEsc, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "tab": tea.KeyTab,
	"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "end": tea.KeyEnd, "home": tea.KeyHome, "backspace": tea.KeyBackspace, "ctrl+c": tea.KeyCtrlC, "ctrl+z": tea.KeyCtrlZ}

// keys presses keys. Each argument is the name of a key, or a text to type.
func (d *driver) keys(keys ...string) *driver {
	d.t.Helper()
	for _, k := range keys {
		if t, ok := named[k]; ok {
			d.send(tea.KeyMsg{Type: t})
		} else {
			for _, r := range k {
				d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
			}
		}
		d.settle()
	}
	return d
}

func (d *driver) click(x, y int) {
	d.send(tea.MouseMsg{X: x, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
	d.settle()
}

func (d *driver) frame() string { return d.m.View() }

// line returns the first line of the frame that contains a text, or "".
func (d *driver) line(text string) string {
	for l := range strings.Lines(d.frame()) {
		if strings.Contains(l, text) {
			return l
		}
	}
	return ""
}

func small() *status.Cluster { return statustest.Cluster(statustest.Small()) }

func monochrome() tui.Palette { return tui.NewPalette(tui.NoColour, false) }
