package phases

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/bundle/driver"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// NvidiaDriver manages NVIDIA's driver on machines with NVIDIA GPUs. With the policy install, it installs the driver from packages. With any other
// policy, it doesn't change the driver. The package gpudriver makes the decisions.
type NvidiaDriver struct{ want *engine.Desired }

// NewDriver returns the phase nvidia-driver for an upgrade of drivers.
func NewDriver(d *engine.Desired) *NvidiaDriver { return &NvidiaDriver{want: d} }

// Names of the phase and of its changes.
const (
	PhaseDriver = "nvidia-driver"
	// DriverTarget is the target of the change that installs packages. The change rolls out in waves.
	DriverTarget     = "NVIDIA driver"
	ModuleTarget     = "module nvidia"
	NouveauFile      = "/etc/modprobe.d/paictl-nvidia.conf"
	ModulesFile      = "/etc/modules-load.d/paictl-nvidia.conf"
	PersistenceUnit  = "nvidia-persistenced.service"
	PersistenceFile  = "/etc/systemd/system/nvidia-persistenced.service.d/paictl.conf"
	fabricUnit       = "nvidia-fabricmanager.service"
	driverTimeout    = 45 * time.Minute // DKMS may build for 15 minutes
	UnfinishedTarget = "packages that dpkg has not finished installing"
	CutOffTarget     = "an interrupted installation of the driver"
	HoldTarget       = "packages of the driver"
	nouveauTarget    = "module nouveau"
	actionUndo       = "undo"
	BroughtTarget    = "packages that were brought for the driver"
	// DriverRepository is the folder on a machine that contains the bundle's packages until the driver works.
	DriverRepository = engine.StateDir + "/driver-repository"
)

// DriverDetectScript defines the shell functions that read a driver's state.
//
//go:embed scripts/driver_detect.sh
var DriverDetectScript string

// DriverScript defines the shell functions that change a driver.
//
//go:embed scripts/driver.sh
var DriverScript string

// Driver returns the configuration's settings for the driver.
func Driver(s *engine.Spec) config.GPUDriver {
	return s.Config.Kubernetes.Kubernetes.GPUDriver.WithDefaults()
}

// Name returns PhaseDriver.
func (*NvidiaDriver) Name() string { return PhaseDriver }

// Traits returns no traits, because cluster upgrades skip this phase. Only a driver upgrade replaces a driver.
func (*NvidiaDriver) Traits() engine.Traits { return engine.Traits{} }

// Applies returns true, because the phase undoes an interrupted installation even if the configuration no longer requests a driver.
func (*NvidiaDriver) Applies(*engine.Node) bool { return true }

// Wanted reports whether a node should have the driver. It returns false if the node has no GPUs or simulated GPUs in the layout.
func (p *NvidiaDriver) Wanted(n *engine.Node) bool {
	gpu := p.want.Config.Layout.MachineSKU[n.SKU].GPU
	return gpu != nil && !gpu.Simulated && Driver(p.want.Spec).Policy != config.GPUDriverNone
}

// Waits returns the steps of the previous wave, so that a broken driver affects the GPUs of only one wave.
func (p *NvidiaDriver) Waits(n *engine.Node, pl *engine.Plan) []engine.Step {
	return rollout(pl, n, PhaseDriver, DriverTarget)
}

// files returns the settings of the kernel and of the persistence daemon. Ubuntu's package starts the daemon without persistence mode. In
// persistence mode, the driver stays initialized while no program uses a GPU. nvidia-uvm must be loaded at boot, because CUDA programs in
// containers can't load it. nvidia-peermem lets network cards with RDMA access the GPUs' memory. It requires Mellanox' own driver, and no other
// module depends on nvidia-peermem.
func (*NvidiaDriver) files(rdma, nvlink5 bool) engine.Resources {
	settings := "# Written by paictl: NVIDIA's driver needs the GPUs for itself.\nblacklist nouveau\noptions nouveau modeset=0\n"
	if rdma {
		settings += "# Network cards reach the GPUs' memory.\nsoftdep nvidia post: nvidia-peermem\n"
	}
	modules := "# Written by paictl: CUDA needs it, and containers can't load it.\nnvidia-uvm\n"
	if nvlink5 {
		modules += "# The fabric manager reaches the NVSwitches through them.\nmlx5_ib\nib_umad\n"
	}
	return engine.Resources{Files: []engine.File{
		{Path: NouveauFile, Mode: 0o644, Body: []byte(settings)},
		{Path: ModulesFile, Mode: 0o644, Body: []byte(modules)},
		{Path: PersistenceFile, Mode: 0o644, Body: []byte("# Written by paictl.\n[Unit]\nStopWhenUnneeded=false\n[Service]\nExecStartPost=-/usr/bin/nvidia-smi -pm 1\n")},
	}}
}

func (*NvidiaDriver) units(fabricManager bool) engine.Resources {
	r := engine.Resources{Units: []engine.Unit{{Name: PersistenceUnit, Reads: []string{PersistenceFile}}}}
	if fabricManager {
		r.Units = append(r.Units, engine.Unit{Name: fabricUnit})
	}
	return r
}

// Detect returns shell code that prints the GPUs, and the packages, modules and programs of the driver.
func (p *NvidiaDriver) Detect(n *engine.Node) (string, error) {
	d := Driver(p.want.Spec)
	if !p.Wanted(n) {
		return "if [ -e \"$S/driver-change\" ]; then printf 'pending\\tyes\\n'; fi\n" +
			"if [ -d \"$S/driver-repository\" ]; then printf 'brought\\tyes\\n'; fi\n", nil
	}
	body := engine.RepairScript + DriverDetectScript + AptProxy(p.want.Spec)
	if d.Policy == config.GPUDriverInstall {
		// These files and units are relevant only if paictl has installed or will install the driver.
		body += p.files(false, false).Detect() + p.units(true).Detect()
	}
	if d.Source == config.GPUSourceBundle {
		body += "OFFLINE=1\n"
	}
	return body + fmt.Sprintf("d_driver %s %s %s %s\n", shell.Quote(d.Policy), shell.Quote(d.Version), shell.Quote(d.Module), shell.QuoteAll(gpudriver.Names(d.Source))), nil
}

// Configured returns the operator's choices for the driver.
func (p *NvidiaDriver) Configured() gpudriver.Want {
	d := Driver(p.want.Spec)
	return gpudriver.Want{Version: d.Version, Module: d.Module, Source: d.Source}
}

func (p *NvidiaDriver) bundled() bool {
	return p.want.Bundle != nil && Driver(p.want.Spec).Source == config.GPUSourceBundle
}

// Packages returns the bundle's packages that a change of the driver needs. If the change fails, the current packages must be installed again. Packages
// includes them unless their files are still on the machine, which is the case if paictl has installed them.
func (p *NvidiaDriver) Packages(s *DriverState) (driver.Choice, error) {
	if !p.bundled() || s == nil || s.Refused() || len(s.missing()) == 0 {
		return driver.Choice{}, nil
	}
	stock, err := driver.Open(p.want.Bundle, s.Machine.System)
	if err != nil {
		return driver.Choice{}, err
	}
	var old map[string]string
	if !s.ours {
		old = s.Machine.Installed
	}
	return stock.Choose(s.Plan.Release, s.Plan.Packages, old), nil
}

// bring uploads the bundle's packages and an index of them for apt.
func (p *NvidiaDriver) bring(ctx context.Context, r *engine.Run, n *engine.Node, s *DriverState) error {
	c, err := p.Packages(s)
	if err != nil {
		return err
	}
	index := c.Index()
	files := []ssh.File{{
		Path: path.Join(DriverRepository, "Packages"), Mode: 0o600, SHA256: engine.Hash(index), Size: int64(len(index)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(index)), nil },
	}}
	for _, a := range c.Artifacts() {
		files = append(files, r.UploadFile(path.Join(DriverRepository, path.Base(a.Path)), a))
	}
	return r.Upload(ctx, n, PhaseDriver, files)
}

func driverMachine(f layout.Facts, a answer.Answer) gpudriver.Machine {
	m := gpudriver.Machine{
		System: f.OS(), Kernel: f.Kernel, Arch: f.Arch, NVSwitches: len(f.NVSwitches), NVLink5: f.NVLink5(),
		Module: a.Value("module"), Userland: a.Value("userland"), Runfile: f.DriverOrigin == "runfile",
		Apt: a.Value("apt") == "yes", Headers: f.KernelHeaders, SecureBoot: f.SecureBoot == "on", KeyEnrolled: a.Value("key") == "enrolled",
		Nouveau: f.Nouveau, Repository: a.Value("repository"), Installed: map[string]string{}, Candidates: map[string][]string{},
	}
	if row, _ := a.Row("module"); len(row) > 1 {
		m.ModuleKind = row[1]
	}
	m.Fabric = gpudriver.Fabric{
		Release: a.Value("fabric-manager"), Active: a.Value("fabric-manager-active") == "yes",
		SubnetManager: a.Value("subnet-manager") == "yes", Modules: a.Value("fabric-modules") == "yes",
	}
	for _, d := range f.NVIDIADevices() {
		m.Devices = append(m.Devices, d.Device)
	}
	for _, row := range a.All("package") {
		if len(row) > 2 && len(row[2]) > 1 && row[2][1] == 'i' {
			m.Installed[row[0]] = row[1]
		}
	}
	for _, row := range a.All("candidate") {
		m.Candidates[row[0]] = row[1:]
	}
	m.Users, m.Displays = programsOf(a.All("user")), programsOf(a.All("display"))
	return m
}

func programsOf(rows [][]string) []string {
	var out []string
	for _, r := range rows {
		if len(r) > 1 {
			out = append(out, fmt.Sprintf("%s (pid %s)", r[0], r[1]))
		}
	}
	return out
}

// DriverState holds the current and the desired state of a node's driver.
type DriverState struct {
	Machine  gpudriver.Machine
	Plan     gpudriver.Plan
	Findings []gpudriver.Finding
	answer   answer.Answer
	// ours is true if paictl has installed packages of the driver.
	ours bool
	// rdma is true if the machine has network cards that can access the memory of its GPUs.
	rdma bool
}

// Decide parses a node's output and decides on its driver. It returns nil for a node without NVIDIA GPUs.
func (p *NvidiaDriver) Decide(f layout.Facts, a answer.Answer) *DriverState {
	if len(f.NVIDIADevices()) == 0 {
		return nil
	}
	_, ours := a.Row("ours")
	s := &DriverState{Machine: driverMachine(f, a), answer: a, ours: ours, rdma: len(f.Infiniband) > 0}
	if p.bundled() {
		s.Machine.AddCandidates(driver.Versions(p.want.Bundle, s.Machine.System))
	}
	if Driver(p.want.Spec).Policy == config.GPUDriverInstall {
		s.Plan, s.Findings = gpudriver.Decide(s.Machine, p.Configured())
	}
	if Driver(p.want.Spec).Policy != config.GPUDriverInstall || s.Plan.KeepsDriver && !ours {
		s.Findings = gpudriver.CheckKept(s.Machine, p.Configured())
	}
	return s
}

// Refused reports whether a finding prevents the installation of the driver.
func (s *DriverState) Refused() bool {
	return slices.ContainsFunc(s.Findings, func(f gpudriver.Finding) bool { return !f.Warning })
}

// missing returns the packages of the plan that aren't installed or whose version differs.
func (s *DriverState) missing() []gpudriver.Package {
	return slices.DeleteFunc(slices.Clone(s.Plan.Packages), func(x gpudriver.Package) bool {
		have := s.Machine.Installed[x.Name]
		return have != "" && (x.Version == "" || x.Version == have)
	})
}

// held reports whether all packages with the driver's version are on hold, so that apt doesn't upgrade them.
func (s *DriverState) held() bool {
	for _, row := range s.answer.All("package") {
		_, ours := s.answer.Row("ours", row[0])
		if ours && len(row) > 2 && gpudriver.Release(row[1]) == s.Plan.Release && strings.HasPrefix(row[2], "i") {
			return false
		}
	}
	return true
}

// Diff returns the changes that the policy requires. Only the policy install changes a driver.
func (p *NvidiaDriver) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	f := w.Facts[n.Hostname]
	if f == nil {
		return nil, nil
	}
	if !p.Wanted(n) {
		return undoing(w.Of(n, PhaseDriver)), nil
	}
	facts, err := layout.ParseFacts(f.Sections["facts"].Raw)
	if err != nil {
		return nil, nil //nolint:nilerr // preflight has reported the error
	}
	s := p.Decide(facts, w.Of(n, PhaseDriver))
	if s == nil { // its GPUs were removed
		return undoing(w.Of(n, PhaseDriver)), nil
	}
	return p.Changes(s), nil
}

// Changes returns the changes for a driver's state. It is the part of Diff without side effects.
func (p *NvidiaDriver) Changes(s *DriverState) []engine.Change {
	if s.Refused() {
		return nil
	}
	if Driver(p.want.Spec).Policy != config.GPUDriverInstall {
		return undoing(s.answer)
	}
	var out []engine.Change
	_, pending := s.answer.Row("pending")
	missing := s.missing()
	if _, brought := s.answer.Row("brought"); brought && len(missing) == 0 {
		out = append(out, engine.Change{Action: "delete", Target: BroughtTarget})
	}
	if broken := s.answer.All("broken"); len(broken) > 0 && (pending || len(missing) > 0) {
		out = append(out, engine.Change{Action: "repair", Target: UnfinishedTarget, Detail: "dpkg --configure -a: " + firstFields(broken)})
	}
	if pending {
		out = append(out, engine.Change{Action: "complete", Target: CutOffTarget})
	}
	if s.Plan.KeepsDriver && !s.ours {
		return out
	}
	out = append(out, p.files(s.rdma, s.Machine.NVLink5).Diff(s.answer)...)
	if len(missing) > 0 {
		out = append(out, engine.Change{Action: s.action(), Target: DriverTarget, Detail: s.detail(missing)})
	}
	if len(missing) > 0 || !s.held() {
		out = append(out, engine.Change{Action: "hold", Target: HoldTarget, Detail: "at " + s.Plan.Release})
	}
	if s.Machine.Nouveau {
		out = append(out, engine.Change{Action: "unload", Target: nouveauTarget, Detail: "the kernel's own driver"})
	}
	switch {
	case s.Machine.Module != s.Plan.Release:
		out = append(out, engine.Change{Action: "load", Target: ModuleTarget, Detail: strings.TrimPrefix(s.Machine.Module+" -> "+s.Plan.Release, " -> ")})
	case s.answer.Value("unified") != "yes":
		out = append(out, engine.Change{Action: "load", Target: ModuleTarget, Detail: "nvidia-uvm, which CUDA needs"})
	case s.Machine.NVLink5 && !s.Machine.Fabric.Modules:
		out = append(out, engine.Change{Action: "load", Target: ModuleTarget, Detail: "mlx5_ib and ib_umad, which the fabric manager needs"})
	}
	return append(out, p.units(s.Machine.NVSwitches > 0).DiffUnits(s.answer, false)...)
}

// undoing returns the changes for a node that should have no driver from paictl.
func undoing(a answer.Answer) (out []engine.Change) {
	if _, brought := a.Row("brought"); brought {
		out = append(out, engine.Change{Action: "delete", Target: BroughtTarget})
	}
	if _, pending := a.Row("pending"); pending {
		out = append(out, engine.Change{Action: actionUndo, Target: CutOffTarget, Detail: "the configuration doesn't request one"})
	}
	return out
}

// action returns the verb for the change of the driver's release: install, upgrade or downgrade.
func (s *DriverState) action() string {
	have := s.Machine.Userland
	if have == "" {
		return "install"
	}
	if gpudriver.Older(s.Plan.Release, have) {
		return "downgrade"
	}
	return "upgrade"
}

func (s *DriverState) detail(missing []gpudriver.Package) string {
	names := make([]string, len(missing))
	for i, x := range missing {
		names[i] = x.Name
	}
	how := "built by DKMS"
	if s.Plan.Signed {
		how = "signed"
	}
	release := s.Plan.Release
	if have := s.Machine.Userland; have != "" && have != release {
		release = have + " -> " + release
	}
	return fmt.Sprintf("%s, %s module, %s, CUDA up to %s: %s", release, s.Plan.Module, how, s.Plan.CUDA, strings.Join(names, " "))
}

func firstFields(rows [][]string) string {
	var out []string
	for _, r := range rows {
		if len(r) > 0 {
			out = append(out, r[0])
		}
	}
	return strings.Join(out, " ")
}

// Apply uploads the packages and makes the changes.
func (p *NvidiaDriver) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	facts, err := layout.ParseFacts(r.Planned.World.Facts[n.Hostname].Sections["facts"].Raw)
	if err != nil {
		return fmt.Errorf("read %s's answer: %w", n.Hostname, err)
	}
	s := p.Decide(facts, r.Planned.World.Of(n, PhaseDriver))
	if s == nil || !p.Wanted(n) {
		s = &DriverState{}
	}
	if p.bundled() && slices.ContainsFunc(cs, func(c engine.Change) bool { return c.Target == DriverTarget }) {
		if err := p.bring(ctx, r, n, s); err != nil {
			return err
		}
	}
	_, err = r.Exec(ctx, n, ssh.Script{
		Name: PhaseDriver + "/apply", Mutates: true, Timeout: max(r.Opts.StepTimeout, driverTimeout),
		Body: engine.ApplyProgram(r.Id, PhaseDriver, p.script(s, cs)),
	})
	return err
}

// script returns shell code that makes the changes. It first completes interrupted work. It writes files before it changes packages, because the
// packages build the initial RAM disk with these files. Kernel modules and services come last.
func (p *NvidiaDriver) script(s *DriverState, cs []engine.Change) string {
	todo := map[string]bool{}
	for _, c := range cs {
		todo[c.Target] = true
	}
	var b strings.Builder
	b.WriteString(engine.RepairScript + DriverDetectScript + DriverScript + AptProxy(p.want.Spec))
	asked := " "
	for _, x := range s.Plan.Packages {
		asked += x.Name + " "
	}
	fmt.Fprintf(&b, "RELEASE=%s\nASKED=%s\n", shell.Quote(s.Plan.Release), shell.Quote(asked))
	if s.Plan.Release == "" { // the node should have no driver
		b.WriteString("p_driver_undo\n")
		return b.String()
	}
	if todo[UnfinishedTarget] || todo[CutOffTarget] {
		b.WriteString("p_driver_dpkg\n")
	}
	b.WriteString(p.files(s.rdma, s.Machine.NVLink5).Script(cs))
	// Run this step even if all packages seem to be installed, because an interrupted change may have to be undone first.
	if again := todo[CutOffTarget] && len(s.Plan.Packages) > 0 && !p.bundled(); todo[DriverTarget] || again {
		specs := make([]string, 0, len(s.Plan.Packages))
		for _, x := range s.Plan.Packages {
			specs = append(specs, strings.TrimSuffix(x.Name+"="+x.Version, "="))
		}
		if p.bundled() {
			b.WriteString("p_driver_brought\n")
		}
		fmt.Fprintf(&b, "p_driver_packages %s\n", shell.QuoteAll(specs))
	}
	if todo[HoldTarget] {
		b.WriteString("p_driver_hold\n")
	}
	if todo[nouveauTarget] {
		b.WriteString("p_driver_nouveau\n")
	}
	if todo[ModuleTarget] {
		if s.Machine.NVLink5 {
			b.WriteString("p_driver_fabric\n")
		}
		b.WriteString("p_driver_load\n")
	}
	if todo[DriverTarget] || todo[ModuleTarget] || todo[CutOffTarget] || todo[BroughtTarget] {
		b.WriteString("p_driver_finish\n")
	}
	b.WriteString(p.units(s.Machine.NVSwitches > 0).Script(cs))
	return b.String()
}

// Verify returns shell code that checks the driver, or "" if paictl doesn't install the node's driver.
func (p *NvidiaDriver) Verify(n *engine.Node) string {
	if !p.Wanted(n) || Driver(p.want.Spec).Policy != config.GPUDriverInstall {
		return ""
	}
	return DriverDetectScript + `
driver_gpus
driver_loaded
driver_userland
[ -n "$module" ] || { echo "the driver's kernel module is not loaded -> see dmesg and dkms status on the machine" >&2; exit 1; }
[ "$module" = "$userland" ] || { echo "a reboot is needed: the driver's kernel module is $module and its libraries are ${userland:-missing} -> reboot the machine (paictl node driver upgrade --reboot does it), then run the same command again" >&2; exit 1; }
n=0
for g in "$R"/proc/driver/nvidia/gpus/*; do
	[ ! -d "$g" ] || n=$((n + 1))
done
driver_unified || { echo "the kernel module nvidia-uvm is not loaded, without which CUDA doesn't work -> see what modprobe nvidia-uvm says on the machine" >&2; exit 1; }
[ "$n" = "$gpus" ] || { echo "the driver sees $n of $gpus GPUs -> look for NVRM and Xid in dmesg on the machine; where a GPU is missing after a reboot, it is broken" >&2; exit 1; }
`
}
