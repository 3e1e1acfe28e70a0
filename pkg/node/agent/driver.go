package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/Masterminds/semver/v3"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// kind is the vendor and the class of the agent's devices in the Container Device Interface.
const kind = claim.Driver + "/gpu"

// Driver allocates the machine's GPUs to pods, as the pods' claims request. kubeletplugin ensures that the kubelet calls it for one claim at a time.
type Driver struct {
	node    string
	gpus    *monitor
	records *records
	// processes checks which pods still run.
	processes *processes
	// vendor provides the edits for containers with real GPUs.
	vendor vendor
	// specs writes files for the container runtime to the folder cdi. writing guards these files, because no file may exist for a claim that has ended.
	specs   *cdi.Cache
	cdi     string
	writing sync.Mutex
	// notices is the folder with the files that report GPU health to containers. notices contains a folder for each claim.
	notices string
	// noticing guards the files in notices. noticing ensures that the latest notice is written last, and that no notice is written for a claim that has
	// ended.
	noticing sync.Mutex
	next     *nextBoot
	ledger   *ledger
	host     host
	log      *slog.Logger
	// fatal stops the agent because of an error.
	fatal func(error)
}

var _ kubeletplugin.DRAPlugin = (*Driver)(nil)

type folders struct {
	// records and orderFile survive a restart of the machine, and cdi and notices don't. cgroups is the folder of the machine's control groups.
	records, orderFile, cdi, notices, cgroups string
	// root is the folder with the machine's files. root is "" on a machine without real NVIDIA GPUs.
	root string
}

// newDriver returns the driver of a node. newDriver writes the container runtime's files for all allocated devices again, because a restart of the
// machine removes these files.
func newDriver(ctx context.Context, node string, gpus *monitor, v vendor, f folders, log *slog.Logger, fatal func(error)) (*Driver, error) {
	d := &Driver{node: node, gpus: gpus, vendor: v, cdi: f.cdi, notices: f.notices, processes: &processes{f.cgroups}, next: &nextBoot{root: f.root}, log: log, fatal: fatal,
		host: host{proc: "/proc", signal: syscall.Kill, since: gpus.now()}}
	var err error
	if d.records, err = openRecords(f.records); err != nil {
		return nil, err
	}
	gpus.mu.Lock()
	gpus.claimed = d.records.claimed
	gpus.mu.Unlock()
	if d.ledger, err = openLedger(f.orderFile); err != nil {
		return nil, err
	}
	// The mode is 0755 because the container runtime may run as another user.
	for _, folder := range []string{f.cdi, f.notices} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	if d.specs, err = cdi.NewCache(cdi.WithSpecDirs(f.cdi), cdi.WithAutoRefresh(false)); err != nil {
		return nil, err
	}
	if err := errors.Join(d.removeLeftSpecs(), d.removeLeftNotices()); err != nil {
		return nil, err
	}
	d.writeSpecs(ctx)
	return d, nil
}

// PrepareResourceClaims allocates the devices of claims. PrepareResourceClaims rejects a claim whose devices are missing, in use, or different from
// the request, because neither the API server nor the kubelet checks the devices.
func (d *Driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	out := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	for _, c := range claims {
		devices, err := d.prepare(ctx, c)
		if err != nil {
			d.log.ErrorContext(ctx, "claim refused", "claim", c.Namespace+"/"+c.Name, "uid", c.UID, "err", err)
			err = fmt.Errorf("claim %s/%s: %w", c.Namespace, c.Name, err)
		}
		out[c.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return out, nil
}

func (d *Driver) prepare(ctx context.Context, c *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	want, err := d.read(c)
	if err != nil {
		return nil, err
	}
	known := d.records.of[c.UID]
	switch {
	case known == nil:
		// Record the devices before the allocation. If the agent is killed in between, the devices must not be allocated to another claim.
		err = d.records.add(want)
	case !slices.Equal(known.Devices, want.Devices):
		err = fmt.Errorf("it was allocated %v on this machine, but now names %v", names(known), names(want))
	}
	if known != nil && err == nil {
		// The existing record contains Since, but a different pod may use the claim now.
		next := *known
		next.Pods, next.PodNames = slices.Clone(known.Pods), slices.Clone(known.PodNames)
		for i, uid := range want.Pods {
			if !slices.Contains(next.Pods, uid) {
				next.Pods, next.PodNames = append(next.Pods, uid), append(next.PodNames, want.PodNames[i])
			}
		}
		if want = known; len(next.Pods) > len(known.Pods) {
			want = &next
			err = d.records.add(want)
		}
	}
	if err == nil {
		err = d.writeSpec(ctx, want)
	}
	if err != nil {
		return nil, err
	}
	devices := make([]kubeletplugin.Device, len(want.Devices))
	for i, a := range want.Devices {
		devices[i] = kubeletplugin.Device{
			Requests: []string{a.Request}, PoolName: d.node, DeviceName: a.Device, CDIDeviceIDs: []string{kind + "=" + specDevice(c.UID, a.Device)},
		}
	}
	if known == nil {
		d.log.InfoContext(ctx, "claim prepared", "claim", c.Namespace+"/"+c.Name, "uid", c.UID, "gpus", names(want))
	}
	return devices, nil
}

// read returns the devices of this machine in a claim. read returns an error if the claim may not use the devices.
func (d *Driver) read(c *resourceapi.ResourceClaim) (*record, error) {
	out := &record{UID: c.UID, Namespace: c.Namespace, Name: c.Name, Since: d.gpus.now().UTC(), Parts: d.gpus.parts, MIG: d.gpus.mig}
	for _, r := range c.Status.ReservedFor {
		if r.APIGroup == "" && r.Resource == "pods" {
			out.Pods, out.PodNames = append(out.Pods, r.UID), append(out.PodNames, r.Name)
		}
	}
	if c.Status.Allocation == nil {
		return nil, errors.New("nothing was allocated for it")
	}
	asked := askedOf(c)
	given := map[string]int64{}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.Driver != claim.Driver {
			continue
		}
		request, known := asked[r.Request]
		g, there := d.gpus.device(r.Device)
		switch holder := d.records.holder(r.Device, d.gpus.parts, d.gpus.mig); {
		case r.Pool != d.node:
			return nil, fmt.Errorf("it was allocated %s of %s; this machine is %s", r.Device, r.Pool, d.node)
		case !there || g.missing:
			return nil, fmt.Errorf("this machine has no %s", r.Device)
		case out.has(r.Device):
			return nil, fmt.Errorf("it was allocated %s twice", r.Device)
		case holder != nil && holder.UID != c.UID:
			return nil, fmt.Errorf("%s belongs to the claim %s/%s (%s) until its pod has ended", r.Device, holder.Namespace, holder.Name, holder.UID)
		case !known:
			return nil, fmt.Errorf("it was allocated %s for %q, which it doesn't request", r.Device, r.Request)
		case r.AdminAccess != nil && *r.AdminAccess:
			return nil, fmt.Errorf("it was allocated %s with adminAccess, which is not supported", r.Device)
		case holder == nil && g.unlike != "":
			return nil, fmt.Errorf("%s doesn't exist yet: its GPU %s", r.Device, strings.TrimPrefix(g.unlike, "it "))
		case holder == nil && d.gpus.mig != "" && g.instance == nil:
			return nil, fmt.Errorf("%s doesn't exist: it is unknown how its GPU is split", r.Device)
		case holder != nil: // it keeps the device, even if the layout now assigns it to others
		case request.class == claim.Class && g.forPods:
			return nil, fmt.Errorf("it was allocated %s, which is for ordinary pods, for its request %q of the class %s", r.Device, r.Request, claim.Class)
		case request.class != claim.Class && !g.forPods:
			return nil, fmt.Errorf("it was allocated %s for its request %q, which doesn't have the class %s", r.Device, r.Request, claim.Class)
		}
		given[r.Request]++
		out.Devices = append(out.Devices, assigned{r.Request, r.Device})
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if r := asked[name]; r.exact && given[name] > r.count {
			return nil, fmt.Errorf("it requests %d devices (%s), but was allocated %d", r.count, name, given[name])
		}
	}
	return out, nil
}

type request struct {
	class string
	// exact means that the request is for count devices. Otherwise, the request is for all devices.
	exact bool
	count int64
}

// askedOf returns the requests of a claim by name. The field Request of an allocated device contains this name. The scheduler doesn't use
// alternatives of claim.Class.
func askedOf(c *resourceapi.ResourceClaim) map[string]request {
	out := map[string]request{}
	for _, r := range c.Spec.Devices.Requests {
		if e := r.Exactly; e != nil {
			out[r.Name] = request{e.DeviceClassName, e.AllocationMode == resourceapi.DeviceAllocationModeExactCount, e.Count}
		}
		for _, sub := range r.FirstAvailable {
			if sub.DeviceClassName != claim.Class {
				out[r.Name+"/"+sub.Name] = request{sub.DeviceClassName, sub.AllocationMode == resourceapi.DeviceAllocationModeExactCount, sub.Count}
			}
		}
	}
	return out
}

func names(r *record) []string {
	out := make([]string, len(r.Devices))
	for i, a := range r.Devices {
		out[i] = a.Device
	}
	return out
}

// UnprepareResourceClaims releases the devices of claims. The kubelet usually calls it when no container of the pods runs. For a force-deleted pod,
// containers may still run. The kubelet then receives an error and retries later.
func (d *Driver) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	out := make(map[types.UID]error, len(claims))
	for _, c := range claims {
		var err error
		if r := d.records.of[c.UID]; r != nil {
			err = d.processes.ended(ctx, r.Pods)
		}
		if err == nil {
			err = d.remove(c.UID)
		}
		if err == nil {
			err = d.forget(c.UID)
		}
		if err != nil {
			d.log.ErrorContext(ctx, "claim not ended", "claim", c.String(), "err", err)
		} else {
			d.log.InfoContext(ctx, "claim ended", "claim", c.String(), "uid", c.UID)
		}
		out[c.UID] = err
	}
	return out, nil
}

// remove removes the record of a claim and the container runtime's file of the claim.
func (d *Driver) remove(uid types.UID) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := d.specs.RemoveSpec(specName(uid)); err != nil {
		return err
	}
	return d.records.remove(uid)
}

// HandleError logs an error that occurs outside of calls. HandleError stops the agent if the error is permanent.
func (d *Driver) HandleError(ctx context.Context, err error, msg string) {
	var dropped *resourceslice.DroppedFieldsError
	if errors.As(err, &dropped) {
		// Before Kubernetes 1.36, sick GPUs then have no taint, and pods with a sick GPU aren't rejected.
		d.log.InfoContext(ctx, "the API server stores only some of the GPUs' attributes", "missing features", dropped.DisabledFeatures())
		return
	}
	if errors.Is(err, kubeletplugin.ErrRecoverable) {
		d.log.WarnContext(ctx, "retrying", "what", msg, "err", err)
		return
	}
	d.fatal(fmt.Errorf("%s: %w", msg, err))
}

// pick sets the instance of g if the record's devices are instances. pick returns an error if the GPU's split has changed since the record was
// written.
func (r *record) pick(g *device, name string) error {
	switch {
	case r.MIG == "" && g.MIG != nil && g.MIG.Enabled:
		return fmt.Errorf("%s doesn't exist at present: its GPU is split into instances (MIG): %s", name, g.MIG)
	case r.MIG == "":
		return nil
	case !g.MIG.SplitInto(r.MIG, int(max(r.Parts, 1))):
		return fmt.Errorf("%s doesn't exist at present: it is one of %d instances of the profile %s, and its GPU is %s", name, max(r.Parts, 1), r.MIG, g.MIG)
	}
	g.instance = &g.MIG.Instances[r.place(name)]
	return nil
}

// perSlice is the number of devices in a ResourceSlice. Kubernetes allows 128 devices, or 64 devices with taints.
const perSlice = 64

// resources returns the machine's devices in the form that Kubernetes requires.
func (d *Driver) resources() resourceslice.DriverResources {
	gpus, _ := d.gpus.devices()
	driver, cuda := d.gpus.versions()
	var devices []resourceapi.Device
	for _, g := range gpus {
		if !g.missing {
			devices = append(devices, publish(&g, driver, cuda, d.gpus.parts, d.gpus.mig))
		}
	}
	pool := resourceslice.Pool{}
	for part := range slices.Chunk(devices, perSlice) {
		pool.Slices = append(pool.Slices, resourceslice.Slice{Devices: part})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: pool}}
}

// publish converts a GPU, or a part of a GPU, to the form that Kubernetes requires. publish leaves out unknown values.
func publish(g *device, driver, cuda string, parts int32, mig string) resourceapi.Device {
	index, uuid := int64(g.Index), g.uuid()
	out := resourceapi.Device{Name: claim.DeviceName(g.Index), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"index": {IntValue: &index}, "uuid": {StringValue: &uuid}, "simulated": {BoolValue: &g.Simulated}, claim.ForPods: {BoolValue: &g.forPods},
	}}
	if g.reason != "" {
		// The effect isn't NoExecute, because a job detects the fault of its GPU. API servers without support for device taints drop the taint.
		out.Taints = []resourceapi.DeviceTaint{{Key: claim.Unhealthy, Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	}
	for name, text := range map[resourceapi.QualifiedName]string{"model": g.Model, "resource.kubernetes.io/pciBusID": g.Bus} {
		if text != "" {
			out.Attributes[name] = resourceapi.DeviceAttribute{StringValue: &text}
		}
	}
	// Kubernetes requires three numbers without leading zeros. Some driver versions contain leading zeros.
	for name, text := range map[resourceapi.QualifiedName]string{"driverVersion": driver, "cudaVersion": cuda} {
		if v, err := semver.NewVersion(text); err == nil {
			text := v.String()
			out.Attributes[name] = resourceapi.DeviceAttribute{VersionValue: &text}
		}
	}
	if g.NUMA != nil {
		out.Attributes["numaNode"] = resourceapi.DeviceAttribute{IntValue: g.NUMA}
	}
	memory := int64(g.Memory)
	if parts > 1 || mig != "" {
		card, n := int64(g.card), int64(max(parts, 1))
		out.Attributes["card"], out.Attributes["parts"] = resourceapi.DeviceAttribute{IntValue: &card}, resourceapi.DeviceAttribute{IntValue: &n}
		memory /= n // for an instance: until it exists; for a part: the memory isn't enforced
	}
	if mig != "" {
		out.Attributes["profile"] = resourceapi.DeviceAttribute{StringValue: &mig}
		out.Attributes["parentUUID"] = resourceapi.DeviceAttribute{StringValue: &g.UUID}
	}
	if g.instance != nil {
		memory = int64(g.instance.Memory)
	}
	if memory > 0 {
		out.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: *resource.NewQuantity(memory, resource.BinarySI)}}
	}
	return out
}
