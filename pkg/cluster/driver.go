package cluster

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
	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// nvidiaDriver manages NVIDIA's driver on machines with NVIDIA GPUs: by default it leaves the driver alone; with
// the policy install it installs the driver from packages. pkg/cluster/gpudriver makes its decisions.
type nvidiaDriver struct{ want *desired }

const (
	phaseDriver = "nvidia-driver"
	// driverTarget is the target of the change that a rollout makes.
	driverTarget     = "NVIDIA driver"
	moduleTarget     = "module nvidia"
	nouveauFile      = "/etc/modprobe.d/paictl-nvidia.conf"
	modulesFile      = "/etc/modules-load.d/paictl-nvidia.conf"
	persistenceUnit  = "nvidia-persistenced.service"
	persistenceFile  = "/etc/systemd/system/nvidia-persistenced.service.d/paictl.conf"
	fabricUnit       = "nvidia-fabricmanager.service"
	driverTimeout    = 45 * time.Minute // DKMS may build for a quarter of an hour
	unfinishedTarget = "packages that dpkg has not finished installing"
	cutOffTarget     = "an interrupted installation of the driver"
	holdTarget       = "packages of the driver"
	nouveauTarget    = "module nouveau"
	actionUndo       = "undo"
	broughtTarget    = "packages that were brought for the driver"
	// driverRepository is the folder of a bundle's packages on a machine until the driver works.
	driverRepository = stateDir + "/driver-repository"
)

//go:embed scripts/driver_detect.sh
var driverDetectScript string

//go:embed scripts/driver.sh
var driverScript string

// driver returns the driver's settings in the configuration.
func (s *Spec) driver() config.GPUDriver {
	return s.Config.Kubernetes.Kubernetes.GPUDriver.WithDefaults()
}

func (*nvidiaDriver) name() string   { return phaseDriver }
func (*nvidiaDriver) traits() traits { return traits{} }

// applies is always true: an interrupted installation is undone even if the configuration no longer asks for a driver.
func (*nvidiaDriver) applies(*Node) bool { return true }

// wanted reports whether a node should have the driver. If the layout has no GPUs for the node, or simulated ones, its
// real GPUs aren't used.
func (p *nvidiaDriver) wanted(n *Node) bool {
	gpu := p.want.Config.Layout.MachineSKU[n.SKU].GPU
	return gpu != nil && !gpu.Simulated && p.want.driver().Policy != config.GPUDriverNone
}

// waits for the earlier waves: a broken driver must not break the GPUs of more than one member.
func (p *nvidiaDriver) waits(n *Node, pl *plan) []step {
	return pl.rollout(n, phaseDriver, driverTarget)
}

// files returns settings of the kernel and of the persistence daemon, which Ubuntu's package starts without persistence: with it the driver stays
// initialised while no program uses a GPU. Without these settings, nvidia-uvm is loaded only by the first program with CUDA outside a container, and
// there may never be one. nvidia-peermem lets network cards with RDMA reach GPUs' memory; it can be loaded only with Mellanox' own driver, and the
// rest works without it.
func (*nvidiaDriver) files(rdma, nvlink5 bool) resources {
	settings := "# Written by paictl: NVIDIA's driver needs the GPUs for itself.\nblacklist nouveau\noptions nouveau modeset=0\n"
	if rdma {
		settings += "# Network cards reach the GPUs' memory.\nsoftdep nvidia post: nvidia-peermem\n"
	}
	modules := "# Written by paictl: CUDA needs it, and containers can't load it.\nnvidia-uvm\n"
	if nvlink5 {
		modules += "# The fabric manager reaches the NVSwitches through them.\nmlx5_ib\nib_umad\n"
	}
	return resources{files: []file{
		{path: nouveauFile, mode: 0o644, body: []byte(settings)},
		{path: modulesFile, mode: 0o644, body: []byte(modules)},
		{path: persistenceFile, mode: 0o644, body: []byte("# Written by paictl.\n[Unit]\nStopWhenUnneeded=false\n[Service]\nExecStartPost=-/usr/bin/nvidia-smi -pm 1\n")},
	}}
}

func (*nvidiaDriver) units(fabricManager bool) resources {
	r := resources{units: []unit{{name: persistenceUnit, reads: []string{persistenceFile}}}}
	if fabricManager {
		r.units = append(r.units, unit{name: fabricUnit})
	}
	return r
}

func (p *nvidiaDriver) detect(n *Node) (string, error) {
	d := p.want.driver()
	if !p.wanted(n) {
		return "if [ -e \"$S/driver-change\" ]; then printf 'pending\\tyes\\n'; fi\n" +
			"if [ -d \"$S/driver-repository\" ]; then printf 'brought\\tyes\\n'; fi\n", nil
	}
	body := repairScript + driverDetectScript + p.want.aptProxy()
	if d.Policy == config.GPUDriverInstall {
		// These count only if the driver is, or will be, installed by paictl.
		body += p.files(false, false).detect() + p.units(true).detect()
	}
	if d.Source == config.GPUSourceBundle {
		body += "OFFLINE=1\n"
	}
	return body + fmt.Sprintf("d_driver %s %s %s %s\n", shell.Quote(d.Policy), shell.Quote(d.Version), shell.Quote(d.Module), shell.QuoteAll(gpudriver.Names(d.Source))), nil
}

// configured returns the driver that the configuration asks for.
func (p *nvidiaDriver) configured() gpudriver.Want {
	d := p.want.driver()
	return gpudriver.Want{Version: d.Version, Module: d.Module, Source: d.Source}
}

// bundled reports whether the bundle has the packages.
func (p *nvidiaDriver) bundled() bool {
	return p.want.Bundle != nil && p.want.driver().Source == config.GPUSourceBundle
}

// brings returns the bundle's packages that the change of a driver takes. The change may have to put the present
// packages back: for packages that paictl installed, their files are kept on the machine.
func (p *nvidiaDriver) brings(s *driverState) (driver.Choice, error) {
	if !p.bundled() || s == nil || s.refused() || len(s.missing()) == 0 {
		return driver.Choice{}, nil
	}
	stock, err := driver.Open(p.want.Bundle, s.machine.System)
	if err != nil {
		return driver.Choice{}, err
	}
	var old map[string]string
	if !s.ours {
		old = s.machine.Installed
	}
	return stock.Choose(s.plan.Release, s.plan.Packages, old), nil
}

// bring uploads the packages, with an index for apt.
func (p *nvidiaDriver) bring(ctx context.Context, r *run, n *Node, s *driverState) error {
	c, err := p.brings(s)
	if err != nil {
		return err
	}
	index := c.Index()
	files := []ssh.File{{
		Path: path.Join(driverRepository, "Packages"), Mode: 0o600, SHA256: hash(index), Size: int64(len(index)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(index)), nil },
	}}
	for _, a := range c.Artifacts() {
		files = append(files, r.uploadFile(path.Join(driverRepository, path.Base(a.Path)), a))
	}
	return r.upload(ctx, n, phaseDriver, files)
}

// driverMachine converts a machine's answer to the input of gpudriver.Decide.
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

// driverState holds the present and the wanted state of a node's driver.
type driverState struct {
	machine  gpudriver.Machine
	plan     gpudriver.Plan
	findings []gpudriver.Finding
	answer   answer.Answer
	// ours means that paictl installed packages of the driver.
	ours bool
	// rdma means that the machine has network cards that could reach its GPUs.
	rdma bool
}

// look parses a node's answers. A node without NVIDIA GPUs has no state.
func (p *nvidiaDriver) look(f layout.Facts, a answer.Answer) *driverState {
	if len(f.NVIDIADevices()) == 0 {
		return nil
	}
	_, ours := a.Row("ours")
	s := &driverState{machine: driverMachine(f, a), answer: a, ours: ours, rdma: len(f.Infiniband) > 0}
	if p.bundled() {
		s.machine.Bring(driver.Versions(p.want.Bundle, s.machine.System))
	}
	if p.want.driver().Policy == config.GPUDriverInstall {
		s.plan, s.findings = gpudriver.Decide(s.machine, p.configured())
	}
	if p.want.driver().Policy != config.GPUDriverInstall || s.plan.Kept && !ours {
		s.findings = gpudriver.Look(s.machine, p.configured())
	}
	return s
}

// refused reports whether the machine can't have its driver.
func (s *driverState) refused() bool {
	return slices.ContainsFunc(s.findings, func(f gpudriver.Finding) bool { return !f.Warning })
}

// missing returns the plan's packages that are absent, or installed in another version.
func (s *driverState) missing() []gpudriver.Package {
	return slices.DeleteFunc(slices.Clone(s.plan.Packages), func(x gpudriver.Package) bool {
		have := s.machine.Installed[x.Name]
		return have != "" && (x.Version == "" || x.Version == have)
	})
}

// held reports whether all packages of the driver's release that paictl has installed are kept from upgrades.
func (s *driverState) held() bool {
	for _, row := range s.answer.All("package") {
		_, ours := s.answer.Row("ours", row[0])
		if ours && len(row) > 2 && gpudriver.Release(row[1]) == s.plan.Release && strings.HasPrefix(row[2], "i") {
			return false
		}
	}
	return true
}

func (p *nvidiaDriver) diff(n *Node, w *world) ([]Change, error) {
	f := w.facts[n.Hostname]
	if f == nil {
		return nil, nil
	}
	if !p.wanted(n) {
		return undoing(w.of(n, phaseDriver)), nil
	}
	facts, err := layout.ParseFacts(f.sections["facts"].Raw)
	if err != nil {
		return nil, nil //nolint:nilerr // preflight has reported the error
	}
	s := p.look(facts, w.of(n, phaseDriver))
	if s == nil { // its GPUs were removed
		return undoing(w.of(n, phaseDriver)), nil
	}
	return p.changes(s), nil
}

// changes is the pure half of diff.
func (p *nvidiaDriver) changes(s *driverState) []Change {
	if s.refused() {
		return nil
	}
	if p.want.driver().Policy != config.GPUDriverInstall {
		return undoing(s.answer)
	}
	var out []Change
	_, pending := s.answer.Row("pending")
	missing := s.missing()
	if _, brought := s.answer.Row("brought"); brought && len(missing) == 0 {
		out = append(out, Change{Action: "delete", Target: broughtTarget})
	}
	if broken := s.answer.All("broken"); len(broken) > 0 && (pending || len(missing) > 0) {
		out = append(out, Change{Action: "repair", Target: unfinishedTarget, Detail: "dpkg --configure -a: " + firstFields(broken)})
	}
	if pending {
		out = append(out, Change{Action: "complete", Target: cutOffTarget})
	}
	if s.plan.Kept && !s.ours {
		return out
	}
	out = append(out, p.files(s.rdma, s.machine.NVLink5).diff(s.answer)...)
	if len(missing) > 0 {
		out = append(out, Change{Action: s.action(), Target: driverTarget, Detail: s.detail(missing)})
	}
	if len(missing) > 0 || !s.held() {
		out = append(out, Change{Action: "hold", Target: holdTarget, Detail: "at " + s.plan.Release})
	}
	if s.machine.Nouveau {
		out = append(out, Change{Action: "unload", Target: nouveauTarget, Detail: "the kernel's own driver"})
	}
	switch {
	case s.machine.Module != s.plan.Release:
		out = append(out, Change{Action: "load", Target: moduleTarget, Detail: strings.TrimPrefix(s.machine.Module+" -> "+s.plan.Release, " -> ")})
	case s.answer.Value("unified") != "yes":
		out = append(out, Change{Action: "load", Target: moduleTarget, Detail: "nvidia-uvm, which CUDA needs"})
	case s.machine.NVLink5 && !s.machine.Fabric.Modules:
		out = append(out, Change{Action: "load", Target: moduleTarget, Detail: "mlx5_ib and ib_umad, which the fabric manager needs"})
	}
	return append(out, p.units(s.machine.NVSwitches > 0).diffUnits(s.answer, false)...)
}

// undoing returns the remaining changes on a node that should have no driver.
func undoing(a answer.Answer) (out []Change) {
	if _, brought := a.Row("brought"); brought {
		out = append(out, Change{Action: "delete", Target: broughtTarget})
	}
	if _, pending := a.Row("pending"); pending {
		out = append(out, Change{Action: actionUndo, Target: cutOffTarget, Detail: "the configuration doesn't request one"})
	}
	return out
}

// action returns the verb for the change of the driver's release.
func (s *driverState) action() string {
	have := s.machine.Userland
	if have == "" {
		return "install"
	}
	if gpudriver.Older(s.plan.Release, have) {
		return "downgrade"
	}
	return "upgrade"
}

func (s *driverState) detail(missing []gpudriver.Package) string {
	names := make([]string, len(missing))
	for i, x := range missing {
		names[i] = x.Name
	}
	how := "built by DKMS"
	if s.plan.Signed {
		how = "signed"
	}
	release := s.plan.Release
	if have := s.machine.Userland; have != "" && have != release {
		release = have + " -> " + release
	}
	return fmt.Sprintf("%s, %s module, %s, CUDA up to %s: %s", release, s.plan.Module, how, s.plan.CUDA, strings.Join(names, " "))
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

func (p *nvidiaDriver) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	facts, err := layout.ParseFacts(r.planned.world.facts[n.Hostname].sections["facts"].Raw)
	if err != nil {
		return fmt.Errorf("read %s's answer: %w", n.Hostname, err)
	}
	s := p.look(facts, r.planned.world.of(n, phaseDriver))
	if s == nil || !p.wanted(n) {
		s = &driverState{}
	}
	if p.bundled() && slices.ContainsFunc(cs, func(c Change) bool { return c.Target == driverTarget }) {
		if err := p.bring(ctx, r, n, s); err != nil {
			return err
		}
	}
	_, err = r.exec(ctx, n, ssh.Script{
		Name: phaseDriver + "/apply", Mutates: true, Timeout: max(r.opts.StepTimeout, driverTimeout),
		Body: applyProgram(r.id, phaseDriver, p.script(s, cs)),
	})
	return err
}

// script returns the shell code that makes the changes. It first finishes interrupted work, then writes the files, since
// the packages build the image from which the machine boots, and then changes packages, kernel modules and services.
func (p *nvidiaDriver) script(s *driverState, cs []Change) string {
	todo := map[string]bool{}
	for _, c := range cs {
		todo[c.Target] = true
	}
	var b strings.Builder
	b.WriteString(repairScript + driverDetectScript + driverScript + p.want.aptProxy())
	asked := " "
	for _, x := range s.plan.Packages {
		asked += x.Name + " "
	}
	fmt.Fprintf(&b, "RELEASE=%s\nASKED=%s\n", shell.Quote(s.plan.Release), shell.Quote(asked))
	if s.plan.Release == "" { // the node should have no driver
		b.WriteString("p_driver_undo\n")
		return b.String()
	}
	if todo[unfinishedTarget] || todo[cutOffTarget] {
		b.WriteString("p_driver_dpkg\n")
	}
	b.WriteString(p.files(s.rdma, s.machine.NVLink5).script(cs))
	// This also applies if all packages seem to be installed: an interrupted change may have to be undone first.
	if again := todo[cutOffTarget] && len(s.plan.Packages) > 0 && !p.bundled(); todo[driverTarget] || again {
		specs := make([]string, 0, len(s.plan.Packages))
		for _, x := range s.plan.Packages {
			specs = append(specs, strings.TrimSuffix(x.Name+"="+x.Version, "="))
		}
		if p.bundled() {
			b.WriteString("p_driver_brought\n")
		}
		fmt.Fprintf(&b, "p_driver_packages %s\n", shell.QuoteAll(specs))
	}
	if todo[holdTarget] {
		b.WriteString("p_driver_hold\n")
	}
	if todo[nouveauTarget] {
		b.WriteString("p_driver_nouveau\n")
	}
	if todo[moduleTarget] {
		if s.machine.NVLink5 {
			b.WriteString("p_driver_fabric\n")
		}
		b.WriteString("p_driver_load\n")
	}
	if todo[driverTarget] || todo[moduleTarget] || todo[cutOffTarget] || todo[broughtTarget] {
		b.WriteString("p_driver_finish\n")
	}
	b.WriteString(p.units(s.machine.NVSwitches > 0).script(cs))
	return b.String()
}

func (p *nvidiaDriver) verify(n *Node) string {
	if !p.wanted(n) || p.want.driver().Policy != config.GPUDriverInstall {
		return ""
	}
	return driverDetectScript + `
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
