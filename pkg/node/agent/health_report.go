package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/openpai/paictl/pkg/node/agent/notice"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// This file reports GPU health to containers with GPUs, to the kubelet, and on the Node. The kubelet writes the health to the status of pods, and the
// scheduler reads the Node.

func (d *Driver) noticeFolder(uid types.UID) string { return filepath.Join(d.notices, string(uid)) }

func (d *Driver) forget(uid types.UID) error {
	d.noticing.Lock()
	defer d.noticing.Unlock()
	return os.RemoveAll(d.noticeFolder(uid))
}

// notify writes the health of a claim's GPUs to the claim's notice, unless the claim has ended.
func (d *Driver) notify(r *record) error {
	d.noticing.Lock()
	defer d.noticing.Unlock()
	if !d.records.known(r.UID) {
		return nil
	}
	folder := d.noticeFolder(r.UID)
	// The mode is 0755 because programs in containers run as any user. Only the containers of this claim contain the folder.
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var told notice.GPUs
	for _, a := range r.Devices {
		g, ok := d.gpus.cardOf(r.card(a.Device))
		if !ok {
			continue
		}
		if err := r.pick(&g, a.Device); err != nil {
			g.reason = cmp.Or(g.reason, err.Error())
		}
		one := notice.GPU{Index: g.Index, UUID: g.uuid(), Reason: g.reason, Since: g.since, Uncorrected: g.memoryFailed()}
		for _, e := range g.xids {
			if !e.At.Before(r.Since) {
				one.XIDs = append(one.XIDs, e.XID)
			}
		}
		told.GPUs = append(told.GPUs, one)
	}
	return notice.Write(folder, told)
}

func (d *Driver) notifyAll(ctx context.Context) {
	for _, r := range d.records.all() {
		if err := d.notify(r); err != nil {
			d.log.ErrorContext(ctx, "a container can't be informed about the health of its GPUs", "claim", r.Namespace+"/"+r.Name, "err", err)
		}
	}
}

func (d *Driver) removeLeftNotices() error {
	entries, err := os.ReadDir(d.notices)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !d.records.known(types.UID(e.Name())) {
			if err := os.RemoveAll(filepath.Join(d.notices, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	// vouched is how long the kubelet trusts a health report of a device. healthEvery is the interval between reports.
	vouched     = 45 * time.Second
	healthEvery = 10 * time.Second
)

// WatchHealthStatus reports the health of GPUs to the kubelet until ctx ends. The kubelet writes the health to the status of pods.
func (d *Driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	for {
		gpus, changed := d.gpus.devices()
		var report kubeletplugin.DeviceHealthReport
		for _, g := range gpus {
			h := kubeletplugin.DeviceHealth{PoolName: d.node, DeviceName: claim.DeviceName(g.Index), Health: kubeletplugin.HealthStatusHealthy, HealthCheckTimeout: vouched}
			if g.reason != "" {
				h.Health, h.Message = kubeletplugin.HealthStatusUnhealthy, g.reason
			}
			report.Devices = append(report.Devices, h)
		}
		select {
		case <-ctx.Done():
			return nil
		case reports <- report:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-time.After(healthEvery):
		}
	}
}

const (
	// ConditionGPUs is the type of a Node condition. The condition shows whether at least one GPU is sick.
	ConditionGPUs corev1.NodeConditionType = "GPUsUnhealthy"
	// ConditionNextBoot is the type of a Node condition. The condition shows whether NVIDIA's driver would be missing after the machine's next start.
	ConditionNextBoot corev1.NodeConditionType = "GPUDriverMissingAtNextBoot"
)

// tellNode writes the health of the GPUs to the Node, for the scheduler and administrators.
func (d *Driver) tellNode(ctx context.Context, client kubernetes.Interface) error {
	gpus, _ := d.gpus.devices()
	told := api.NodeDevices{Devices: []api.Device{}, Parts: int(d.gpus.parts), MIG: d.gpus.mig}
	for _, g := range gpus {
		one := api.Device{Index: g.Index, Healthy: g.reason == "", Model: g.Model, Reason: g.reason, Ignored: g.ignored, ForPods: g.forPods}
		if g.instance != nil {
			one.Instance = g.instance.UUID
		}
		told.Devices = append(told.Devices, one)
	}
	cards, _ := d.gpus.cards()
	var sick []string
	for _, g := range cards {
		if g.reason != "" {
			sick = append(sick, fmt.Sprintf("GPU %d: %s", g.Index, g.reason))
		}
	}
	text, err := json.Marshal(told)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{api.DevicesAnnotation: string(text)}}})
	if err != nil {
		return err
	}
	nodes := client.CoreV1().Nodes()
	if _, err := nodes.Patch(ctx, d.node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write the GPUs' health on the node: %w", err)
	}
	want := []corev1.NodeCondition{{Type: ConditionGPUs, Status: corev1.ConditionFalse, Reason: "Healthy", Message: plural.Of(len(cards), "GPU") + " of the machine work"}}
	if len(sick) > 0 {
		want[0].Status, want[0].Reason, want[0].Message = corev1.ConditionTrue, "Unhealthy", strings.Join(sick, "\n")
	}
	if kernel, ready := d.next.look(); ready {
		want = append(want, corev1.NodeCondition{Type: ConditionNextBoot, Status: corev1.ConditionFalse, Reason: "ModuleInstalled",
			Message: "NVIDIA's driver has a module for kernel " + kernel + ", which the machine starts next"})
	} else if kernel != "" {
		want = append(want, corev1.NodeCondition{Type: ConditionNextBoot, Status: corev1.ConditionTrue, Reason: "NoModule", Message: d.next.trouble()})
	}
	node, err := nodes.Get(ctx, d.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if want = d.changed(node, want); len(want) == 0 {
		return nil
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": want}})
	if err != nil {
		return err
	}
	if _, err := nodes.Patch(ctx, d.node, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("write the GPUs' health on the node: %w", err)
	}
	return nil
}

// changed returns the conditions in want that differ from the Node's conditions, with the times of the changes.
func (d *Driver) changed(node *corev1.Node, want []corev1.NodeCondition) (out []corev1.NodeCondition) {
	now := metav1.NewTime(d.gpus.now())
next:
	for _, c := range want {
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		for _, old := range node.Status.Conditions {
			if old.Type == c.Type && old.Status == c.Status {
				if old.Message == c.Message {
					continue next
				}
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		out = append(out, c)
	}
	return out
}

const (
	// tellEvery is how often the agent writes the Node without a change, because another program may have changed the Node.
	tellEvery = 5 * time.Minute
	// newsPause is the minimum time between notifications, because a failing GPU may report thousands of errors.
	newsPause = 200 * time.Millisecond
)

// tellContainers writes the notices of all claims after each change, until ctx ends. tellContainers doesn't depend on the API server.
func (d *Driver) tellContainers(ctx context.Context) {
	for ctx.Err() == nil {
		_, changed := d.gpus.devices()
		d.notifyAll(ctx)
		d.pause(ctx, changed, tellEvery)
	}
}

// pause returns after while, or shortly after a change, so that several changes are handled together.
func (d *Driver) pause(ctx context.Context, changed <-chan struct{}, while time.Duration) {
	select {
	case <-ctx.Done():
	case <-changed:
		select {
		case <-ctx.Done():
		case <-time.After(newsPause):
		}
	case <-time.After(while):
	}
}

// tell publishes each change in Kubernetes, until ctx ends.
func (d *Driver) tell(ctx context.Context, client kubernetes.Interface, publish func(context.Context) error) {
	const first, most = time.Second, time.Minute
	pause := first
	var said string // the last state that was sent to Kubernetes
	var at time.Time
	for ctx.Err() == nil {
		gpus, changed := d.gpus.devices()
		var err error
		labels, _ := d.labels()
		if now := summary(gpus) + fmt.Sprint(labels); at.IsZero() || now != said || time.Since(at) >= tellEvery {
			if err = publish(ctx); err == nil {
				err = errors.Join(d.tellNode(ctx, client), d.label(ctx, client))
			}
			if said, at = now, time.Now(); err != nil {
				at = time.Time{}
			}
		}
		wait := tellEvery
		if err != nil {
			d.log.WarnContext(ctx, "retrying", "err", err)
			wait, pause = pause, min(2*pause, most)
		} else {
			pause = first
		}
		d.pause(ctx, changed, wait)
	}
}

// summary returns a text that changes when the published state of a GPU changes.
func summary(gpus []device) string {
	var b strings.Builder
	for _, g := range gpus {
		fmt.Fprintf(&b, "%d %q %q %q %q %q\n", g.Index, g.Bus, g.UUID+" "+g.uuid(), g.Model, g.reason, g.ignored)
	}
	return b.String()
}
