package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/job"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// A row holds the fields of an object that the model needs. Rows never change. The strings of a decoded object are
// separate allocations, so a row doesn't keep the whole object in memory.

type nodeRow struct {
	name, address            string
	roles                    []string // from its labels
	ready                    corev1.ConditionStatus
	since                    time.Time
	message                  string
	pressure                 []string
	cordoned                 bool
	cordonedBy, cordonReason string // of the action that cordoned it
	kubelet, runtime,
	kernel, os string
	cpu, memory int64
	devices     []schedulerapi.Device
	parts       int32
	reported    bool // its agent reports its GPUs
}

// rolePrefix is the prefix of the node labels for machine roles.
const rolePrefix = "pai-"

// labelControlPlane marks nodes of the control plane.
const labelControlPlane = "node-role.kubernetes.io/control-plane"

func newNodeRow(n *corev1.Node) *nodeRow {
	info := &n.Status.NodeInfo
	r := &nodeRow{name: n.Name, address: nodeAddress(n), ready: corev1.ConditionUnknown, cordoned: n.Spec.Unschedulable,
		kubelet: info.KubeletVersion, runtime: info.ContainerRuntimeVersion, kernel: info.KernelVersion, os: info.OSImage,
		cpu: n.Status.Allocatable.Cpu().MilliValue(), memory: n.Status.Allocatable.Memory().Value() >> 20}
	for label, value := range n.Labels {
		if strings.HasPrefix(label, rolePrefix) && value == "true" {
			r.roles = append(r.roles, label)
		}
	}
	if _, master := n.Labels[labelControlPlane]; master && !slices.Contains(r.roles, "pai-master") {
		r.roles = append(r.roles, "pai-master")
	}
	if m := actionsv1.ReadMark(n.Annotations); m != nil && r.cordoned {
		r.cordonedBy, r.cordonReason = terminal.Line(m.By.Text()), terminal.Line(m.Reason)
	}
	slices.Sort(r.roles)
	r.readConditions(n.Status.Conditions)
	if text := n.Annotations[schedulerapi.DevicesAnnotation]; text != "" {
		var told schedulerapi.NodeDevices
		if err := json.Unmarshal([]byte(text), &told); err != nil {
			r.message = cmp.Or(r.message, fmt.Sprintf("the annotation %s can't be read: %v", schedulerapi.DevicesAnnotation, err))
		} else {
			r.devices, r.parts, r.reported = told.Devices, told.Split(), true
		}
	}
	return r
}

func (r *nodeRow) readConditions(list []corev1.NodeCondition) {
	for i := range list {
		c := &list[i]
		switch {
		case c.Type == corev1.NodeReady:
			r.ready, r.since = c.Status, c.LastTransitionTime.Time
			if c.Status != corev1.ConditionTrue {
				r.message = rules.Words(c.Reason) + ": " + c.Message
			}
		case c.Status != corev1.ConditionTrue, c.Type == checks.ConditionGPUsUnhealthy: // the GPUs report this one by one
		default:
			if c.Type == checks.ConditionNextBoot {
				r.message = cmp.Or(r.message, strings.ReplaceAll(c.Message, "\n", "; "))
			}
			if _, bad := checks.Condition(string(c.Type)); bad {
				r.pressure = append(r.pressure, string(c.Type))
			}
		}
	}
}

func nodeAddress(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				return ip.String()
			}
		}
	}
	return ""
}

type podRow struct {
	namespace, name, uid, node string
	job                        string // the name of the Framework, "" of other pods
	task                       string // worker[3]
	start                      job.Start
	ended                      bool
	cpu, memory                int64 // what it requests
	held                       string
	// indices are the GPUs in the pod's annotation, if the pod has no claim.
	indices []int32
	// shown is the result of shownOf.
	shown string
}

func newPodRow(p *corev1.Pod) *podRow {
	r := &podRow{namespace: p.Namespace, name: p.Name, uid: string(p.UID), node: p.Spec.NodeName, start: job.NewStart(p),
		ended: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed}
	for _, c := range p.Spec.Containers {
		r.cpu += c.Resources.Requests.Cpu().MilliValue()
		r.memory += c.Resources.Requests.Memory().Value() >> 20
	}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways { // a sidecar, which runs beside the other containers
			r.cpu += c.Resources.Requests.Cpu().MilliValue()
			r.memory += c.Resources.Requests.Memory().Value() >> 20
		}
	}
	if name := p.Labels[v1.LabelFramework]; name != "" {
		r.job = name
		index, _ := strconv.ParseInt(p.Labels[v1.LabelTaskIndex], 10, 32)
		r.task = job.TaskName(cmp.Or(p.Annotations[v1.AnnotationTaskRole], p.Labels[v1.LabelTaskRole]), int32(index))
		r.held = job.PendingReason(p)
	} else {
		r.shown = shownOf(p)
	}
	if r.node != "" && !claim.Expected(p) {
		r.indices = isolation(p)
	}
	return r
}

// shownOf returns a text that changes with the fields that determine a service's state.
func shownOf(p *corev1.Pod) string {
	text := string(p.UID) + string(p.Status.Phase)
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		text += fmt.Sprint(s.Ready, s.RestartCount)
		if s.State.Waiting != nil {
			text += s.State.Waiting.Reason
		}
	}
	return text
}

// isolation returns the GPUs in the annotation of a pod without a claim. It returns nil if the annotation is invalid.
func isolation(p *corev1.Pod) []int32 {
	text := cmp.Or(p.Annotations[annotation.IsolationKey], p.Annotations[annotation.LegacyIsolationKey])
	if text == "" || len(text) > 4096 {
		return nil
	}
	var out []int32
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
		if err != nil || n < 0 {
			return nil
		}
		out = append(out, int32(n))
	}
	return out
}

// sliceRow is a ResourceSlice with some or all of the GPUs that a machine's agent publishes.
type sliceRow struct {
	node    string
	driver  string // the driver version of the GPUs
	devices []deviceRow
}

type deviceRow struct {
	index       int32
	model, uuid string
	memory      int64 // MiB
	sick        bool
	forPods     bool
	simulated   bool
}

func newSliceRow(s *resourceapi.ResourceSlice) *sliceRow {
	if s.Spec.Driver != claim.Driver || s.Spec.NodeName == nil {
		return nil
	}
	r := &sliceRow{node: *s.Spec.NodeName}
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		index, ok := claim.DeviceIndex(d.Name)
		if !ok {
			continue
		}
		row := deviceRow{index: index, model: text(d, "model"), uuid: text(d, "uuid"), forPods: flag(d, claim.ForPods), simulated: flag(d, "simulated")}
		if c, ok := d.Capacity["memory"]; ok {
			row.memory = c.Value.Value() >> 20
		}
		for k := range d.Taints {
			row.sick = row.sick || d.Taints[k].Key == claim.Unhealthy
		}
		if v := d.Attributes["driverVersion"].VersionValue; v != nil {
			r.driver = *v
		}
		r.devices = append(r.devices, row)
	}
	return r
}

func text(d *resourceapi.Device, name resourceapi.QualifiedName) string {
	if v := d.Attributes[name].StringValue; v != nil {
		return *v
	}
	return ""
}

func flag(d *resourceapi.Device, name resourceapi.QualifiedName) bool {
	v := d.Attributes[name].BoolValue
	return v != nil && *v
}

// claimRow is an allocated ResourceClaim with the GPUs of a pod.
type claimRow struct {
	node, pod, uid string // pod is namespace/name
	indices        []int32
}

func newClaimRow(c *resourceapi.ResourceClaim) *claimRow {
	uid, at, err := claim.Read(c)
	if err != nil {
		return nil // it has no GPUs, or not yet
	}
	return &claimRow{node: at.Node, pod: c.Namespace + "/" + c.Status.ReservedFor[0].Name, uid: string(uid), indices: at.Indices}
}

// eventRow is an event, with the name of the Framework that may own the event's pod.
type eventRow struct {
	Event
	uid string
	job string
}

// objectName is the length of every Framework name.
const objectName = 32

func newEventRow(e *corev1.Event) *eventRow {
	about, told := &e.InvolvedObject, job.NewEvent(e)
	r := &eventRow{uid: string(e.UID), Event: Event{At: told.Time.UTC(), Count: int(told.Count), Type: e.Type, Reason: e.Reason,
		Object: strings.ToLower(about.Kind) + "/" + about.Name, Namespace: about.Namespace, Message: clip(e.Message)}}
	if len(about.Name) >= objectName && about.Namespace != "" {
		r.job = about.Name[:objectName]
	}
	return r
}

// longest is the maximum length of stored texts from other programs.
const longest = 1024

func clip(s string) string {
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
