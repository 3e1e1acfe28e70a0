package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/node/agent/repair"
)

// This file handles requests to restart the machine. The ledger records the boot ID when a restart begins. If an agent is killed, the next agent in
// the same boot continues the restart. An agent in the next boot doesn't restart the machine again.

const (
	// restartSignal makes systemd start reboot.target. systemd(1) defines it as SIGRTMIN+5, and SIGRTMIN is 34 in the C library.
	restartSignal = syscall.Signal(34 + 5)
	// signalEvery is the interval between signals while the machine still runs. systemd ignores all signals after the first signal.
	signalEvery = 30 * time.Second
	// systemdTime is how long systemd may take to stop the machine's services. A restart begins within repair.Valid after the request. The alert handler
	// waits 30 minutes for the answer.
	systemdTime = 14 * time.Minute
	// settling is how long after the agent's start GPUs may still appear.
	settling = 3 * time.Minute
	// settleEvery is the interval between checks of the GPUs during settling.
	settleEvery = 5 * time.Second
)

// host is the machine outside of the agent's container. The container shares the machine's PID namespace if restarts are allowed.
type host struct {
	// restarts reports whether the configuration allows restarts of the machine.
	restarts bool
	proc     string
	signal   func(pid int, s syscall.Signal) error
	// signaled is the time of the last signal.
	signaled time.Time
	// since is the start time of the agent.
	since time.Time
}

// boot returns a text that identifies the current boot, or "" if the boot is unknown. The text also contains the start time of the first process,
// because a machine that is a container has the boot ID of the outer machine.
func (h *host) boot() string {
	id := bootID(h.proc)
	stat, err := os.ReadFile(filepath.Join(h.proc, "1", "stat"))
	if err != nil || id == "" {
		return ""
	}
	const starttime = 22 - 3 // proc_pid_stat(5) counts from 1, and the third field follows the name
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= starttime {
		return ""
	}
	return id + "/" + fields[starttime]
}

// restart sends systemd the signal to restart the machine.
func (h *host) restart() error {
	comm, err := os.ReadFile(filepath.Join(h.proc, "1", "comm"))
	if err != nil {
		return fmt.Errorf("find the first process of the machine: %w", err)
	}
	if name := strings.TrimSpace(string(comm)); name != "systemd" {
		return fmt.Errorf("the first process that the agent sees is %q and not systemd: restart the machine by hand", name)
	}
	if err := h.signal(1, restartSignal); err != nil {
		return fmt.Errorf("have systemd restart the machine: %w", err)
	}
	return nil
}

// answerRestart carries out a request to restart the machine, and writes the answer after the restart. answerRestart returns the time until the next
// check. 0 means that the next check is necessary only when the Node changes.
func (d *Driver) answerRestart(ctx context.Context, client kubernetes.Interface, n *corev1.Node) (time.Duration, error) {
	o, err := repair.ReadRestart(n)
	if err != nil {
		d.log.WarnContext(ctx, "an order that can't be read", "err", err)
		return 0, nil
	}
	if o == nil || restartAnswered(n, o) {
		return 0, nil
	}
	// Read the Node again, because the watch may be outdated. A user may have uncordoned or removed the Node, or another request may have arrived.
	now, err := client.CoreV1().Nodes().Get(ctx, d.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	is, err := repair.ReadRestart(now)
	if err != nil || is == nil || is.ID != o.ID || restartAnswered(now, is) {
		return 0, nil //nolint:nilerr // the next event of the Node reports it
	}
	a, after := d.followRestart(ctx, is, now)
	if a == nil {
		return after, nil
	}
	return 0, repair.WriteRestartAnswer(ctx, client, now, *a)
}

func restartAnswered(n *corev1.Node, o *repair.Restart) bool {
	a, err := repair.ReadRestartAnswer(n)
	return err == nil && a != nil && a.ID == o.ID
}

// followRestart carries out the next step of a request. followRestart returns the answer, or nil and the time until the next check.
func (d *Driver) followRestart(ctx context.Context, o *repair.Restart, n *corev1.Node) (*repair.Answer, time.Duration) {
	boot := d.host.boot()
	e := d.ledger.restart(o.ID)
	var err error
	switch {
	case e.Answer != nil: // it couldn't be written to the Node
		return e.Answer, 0
	case !d.host.restarts: // then it doesn't see the machine's first process, and can't see whether the machine has restarted
		err = errors.New("the agent may not restart its machine: set agent.restartMachines to true, and start the service agent again")
	case e.Boot == "" && n.Status.NodeInfo.BootID == "", e.Boot != "" && boot == "":
		return nil, signalEvery
	case e.Boot == "" && o.Boot == n.Status.NodeInfo.BootID && d.kubeletMayBeBehind(o):
		return nil, settleEvery
	case e.Boot == "" && o.Boot == n.Status.NodeInfo.BootID:
		err = d.beginRestart(ctx, o, n, boot)
	case e.Boot != "" && e.Boot == boot:
		err = d.continueRestart(ctx, o, e.Began)
	default:
		return d.restarted(ctx, o)
	}
	if err != nil {
		return d.endRestart(ctx, o, false, err.Error()), 0
	}
	return nil, signalEvery
}

// kubeletMayBeBehind reports whether the kubelet may still report the boot ID from before a restart. This happens if the machine restarts while the
// request waits. In a sandbox, the kubelet's boot ID always differs from the kernel's boot ID, so the agent trusts the kubelet after the time
// settling.
func (d *Driver) kubeletMayBeBehind(o *repair.Restart) bool {
	return bootID(d.host.proc) != o.Boot && d.gpus.now().Sub(d.host.since) < settling
}

// beginRestart checks whether the machine may be restarted, records the restart, and signals systemd.
func (d *Driver) beginRestart(ctx context.Context, o *repair.Restart, n *corev1.Node, boot string) error {
	if err := d.mayRestart(o, n, boot); err != nil {
		return err
	}
	began := d.gpus.now()
	if err := d.ledger.begin(entry{ID: o.ID, Boot: boot, Began: began}); err != nil {
		return fmt.Errorf("the machine wasn't restarted, because the agent can't record it: %w", err)
	}
	return d.continueRestart(ctx, o, began)
}

// mayRestart returns an error if the machine must not be restarted now.
func (d *Driver) mayRestart(o *repair.Restart, n *corev1.Node, boot string) error {
	now := d.gpus.now()
	switch age := now.Sub(o.At); {
	case age > repair.Valid || age < -repair.Valid:
		return fmt.Errorf("the order is from %s, but on the machine it is %s: too old, or the clocks differ", o.At.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !n.Spec.Unschedulable:
		return errors.New("the machine isn't cordoned: drain it first")
	case boot == "":
		return errors.New("the agent can't read the machine's boot ID, and couldn't see whether the machine has restarted")
	}
	for _, r := range d.records.all() {
		return fmt.Errorf("the claim %s/%s holds GPUs: drain the machine first", r.Namespace, r.Name)
	}
	if d.next.look(); d.next.trouble() != "" {
		return errors.New(d.next.trouble())
	}
	return nil
}

// continueRestart signals systemd for a recorded restart. continueRestart may signal systemd several times, because an earlier agent may have been
// killed.
func (d *Driver) continueRestart(ctx context.Context, o *repair.Restart, began time.Time) error {
	now := d.gpus.now()
	if now.Sub(began) > systemdTime {
		return fmt.Errorf("systemd has had %s to restart the machine, which still runs: see systemctl list-jobs there", systemdTime)
	}
	if now.Sub(d.host.signaled) < signalEvery {
		return nil
	}
	d.log.WarnContext(ctx, "restarting the machine", "by", o.By, "reason", o.Reason)
	d.host.signaled = now
	return d.host.restart()
}

// restarted checks the GPUs after a restart. restarted returns the answer, or the time until the next check.
func (d *Driver) restarted(ctx context.Context, o *repair.Restart) (*repair.Answer, time.Duration) {
	cards, _ := d.gpus.cards()
	seen, why := d.gpus.answered()
	var sick []string
	for _, g := range cards {
		if g.reason != "" {
			sick = append(sick, fmt.Sprintf("GPU %d: %s", g.Index, g.reason))
		}
	}
	if !seen || why != "" {
		sick = append(sick, "the GPUs can't be checked: "+why)
	}
	switch {
	case len(sick) == 0:
		return d.endRestart(ctx, o, true, fmt.Sprintf("the machine has restarted, and none of its %d GPUs has a fault", len(cards))), 0
	case d.gpus.now().Sub(d.host.since) < settling:
		return nil, settleEvery
	}
	return d.endRestart(ctx, o, false, "the machine has restarted, and still has faults: "+strings.Join(sick, "; ")), 0
}

func (d *Driver) endRestart(ctx context.Context, o *repair.Restart, done bool, message string) *repair.Answer {
	a := repair.Answer{ID: o.ID, Done: done, Message: message[:min(len(message), repair.MostMessage)]}
	d.log.InfoContext(ctx, "answered", "action", "restart", "done", done, "message", message)
	if err := d.ledger.end(a); err != nil {
		d.log.ErrorContext(ctx, "the result of an order can't be stored", "err", err)
	}
	return &a
}
