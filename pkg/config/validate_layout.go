package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
)

func (k *checker) checkSKUs() {
	used := map[string]bool{}
	for _, m := range k.c.Layout.MachineList {
		used[m.SKU] = true
	}
	for _, name := range skuNames(k.c.Layout) {
		s, p := k.c.Layout.MachineSKU[name], fieldPath{"machine-sku", name}
		if e := validation.IsValidLabelValue(name); len(e) > 0 || name == "" {
			k.layout.fail(p, "sku/name", fmt.Sprintf("%q is not a name for a SKU: it becomes a label's value", name), "use a-z, 0-9, -, _ and dots, at most 63 characters")
		}
		if !used[name] {
			k.layout.warn(p, "sku/unused", "no machine has this SKU", "remove it, or give it to a machine as machine-type")
		}
		if !s.Discovered && incomplete(s) {
			k.layout.warn(p, "layout/not-discovered", fmt.Sprintf("the hardware of SKU %s is not known", name),
				"fill in mem, cpu.vcore, os and gpu, or generate again without --offline")
			continue
		}
		k.checkSKU(p, s)
	}
}

func incomplete(s layout.SKU) bool { return s.Mem == "" || s.CPU.VCore == 0 || s.OS == "" }

// mostParts is the maximum number of jobs that share a GPU. The context of each job takes hundreds of MiB of the GPU's memory.
const mostParts = 16

func (k *checker) checkSKU(p fieldPath, s layout.SKU) {
	r := k.layout
	if s.Mem == "" {
		r.fail(p.With("mem"), "sku/mem", "the memory is missing", "write a quantity such as 512Gi")
	} else {
		r.failIf(badQuantity(s.Mem), p.With("mem"), "sku/mem", "write a quantity such as 512Gi")
	}
	if s.CPU.VCore <= 0 {
		r.fail(p.With("cpu", "vcore"), "sku/vcore", "the number of processors must be more than 0", "write the number of logical processors (nproc)")
	}
	if s.OS == "" {
		r.fail(p.With("os"), "sku/os", "the operating system is missing", "write name and version in one word, such as ubuntu22.04")
	}
	if k.c.IsManaged() && s.Arch != "" && s.Arch != "amd64" && s.Arch != "arm64" {
		r.fail(p.With("arch"), "sku/arch", fmt.Sprintf("%q is not amd64 or arm64", s.Arch), "the bundle is built for amd64 or arm64")
	}
	if g := s.GPU; g != nil {
		if g.Count <= 0 {
			r.fail(p.With("gpu", "count"), "sku/gpu-count", "the number of GPUs must be more than 0", "remove the gpu section of machines without GPUs")
		}
		switch {
		case g.Parts < 0 || g.Parts > mostParts:
			r.fail(p.With("gpu", "parts"), "sku/gpu-parts", fmt.Sprintf("a GPU can't be split into %d parts", g.Parts), fmt.Sprintf("write a number from 2 to %d, or remove the line to give jobs whole GPUs", mostParts))
		case g.Parts > 1 && !g.Simulated && !g.NVIDIA():
			r.fail(p.With("gpu", "parts"), "sku/gpu-parts", fmt.Sprintf("%s is not a GPU of NVIDIA; jobs can't share others", g.Type), "remove the line")
		}
		k.checkMIG(p.With("gpu", "mig"), g)
		if g.Type == "" {
			r.fail(p.With("gpu", "type"), "sku/gpu-type", "the GPU's model is missing", "write the model in one word, such as NVIDIA-A100-SXM4-80GB")
		} else if len(validation.IsValidLabelValue(g.Type)) > 0 {
			r.fail(p.With("gpu", "type"), "sku/gpu-type", fmt.Sprintf("%q is not one word of letters, digits, -, _ and dots", g.Type), "write it as nvidia-smi -L does, with - for spaces")
		}
	}
	for i, d := range s.Disks {
		r.failIf(badQuantity(d.Size), p.With("disks", i, "size"), "sku/disk-size", "write a quantity such as 894Gi")
		if d.Name == "" {
			r.fail(p.With("disks", i), "sku/disk-name", "the disk has no name", "write the kernel's name, such as nvme0n1")
		}
	}
}

func (k *checker) checkMIG(p fieldPath, g *layout.GPU) {
	if g.MIG == "" {
		return
	}
	r, known := k.layout, layout.MIGProfiles(g.Type)
	_, err := layout.MIGInstances(g.Type, g.MIG)
	switch {
	case g.Parts > 1:
		r.fail(p, "sku/gpu-mig", "a GPU is split by the hardware (mig) or by time (parts), not by both", "remove one of the two lines")
	case !g.NVIDIA():
		r.fail(p, "sku/gpu-mig", fmt.Sprintf("%s is not a GPU of NVIDIA; others can't be split into instances", g.Type), "remove the line")
	case len(known) == 0:
		r.fail(p, "sku/gpu-mig", err.Error(), "remove the line; if the card can be split, write its model as nvidia-smi -L does, with - for spaces")
	case !slices.Contains(known, g.MIG):
		r.fail(p, "sku/gpu-mig", err.Error(), "it has "+strings.Join(known, ", "))
	case err != nil:
		r.fail(p, "sku/gpu-mig", err.Error(), "such as NVIDIA-A100-SXM4-80GB, in gpu.type")
	}
}

func (k *checker) checkMachineList() {
	r := k.layout
	if len(k.c.Layout.MachineList) == 0 {
		r.fail(fieldPath{"machine-list"}, "layout/no-machines", "there are no machines", "add one, or generate the file: paictl config generate")
		return
	}
	names, ips := map[string]int{}, map[string]int{}
	for i, m := range k.c.Layout.MachineList {
		p := fieldPath{"machine-list", i}
		k.checkName(p, m, names, i)
		if k.c.IsManaged() {
			k.checkAddress(p, m, ips, i)
		}
		k.checkType(p, m)
		k.checkGPUsForPods(p.With("gpus-for-pods"), m)
		checkLabelsAndTaints(r, p, m.Labels, m.Taints)
		if len(m.Roles) == 0 {
			r.fail(p.With("roles"), "layout/no-roles", "the machine has no role", "write roles: [worker]")
		}
		checkRoles(r, p.With("roles"), m.Roles, k.c.Roles.Roles)
		if m.SSH != nil {
			k.checkSSH(r, p.With("ssh"), *m.SSH)
		}
		k.checkRoleLabels(p.With("labels"), m)
	}
	machines := k.c.Layout.MachineList
	checkForeignNames(r, "machine-list", "layout/hostname", len(machines), func(i int) (string, string) { return machines[i].Hostname, machines[i].HostIP })
}

func (k *checker) checkRoleLabels(p fieldPath, m layout.Machine) {
	for _, key := range sortedKeys(m.Labels) {
		for _, name := range sortedKeys(k.c.Roles.Roles) {
			value, ok := k.c.Roles.Roles[name].Labels[key]
			if ok && value != m.Labels[key] && (m.HasRole(name) || strings.HasPrefix(key, "pai-")) {
				k.layout.fail(p.With(key), "layout/label", fmt.Sprintf("the label %s belongs to the role %s, which sets it to %q", key, name, value), "remove the label; the machine has it if it has the role")
				break
			}
		}
	}
}

func (k *checker) checkName(p fieldPath, m layout.Machine, names map[string]int, i int) {
	r := k.layout
	if m.Hostname == "" {
		r.fail(p.With("hostname"), "layout/hostname", "the machine has no hostname", "write the output of the command hostname on "+m.HostIP)
		return
	}
	message, remedy := badHostname(m.Hostname)
	if !k.c.IsManaged() && len(validation.IsDNS1123Subdomain(m.Hostname)) == 0 {
		message = "" // the node exists, even if its name is too long
	}
	r.failIf(message, p.With("hostname"), "layout/hostname", remedy)
	if j, ok := names[m.Hostname]; ok {
		r.fail(p.With("hostname"), "layout/duplicate-hostname", fmt.Sprintf("%s is already the name of machine-list[%d]%s", m.Hostname, j, lineOf(r.doc, fieldPath{"machine-list", j, "hostname"})),
			"give each machine a different name; it becomes the name of its Kubernetes node")
		return
	}
	names[m.Hostname] = i
}

func (k *checker) checkAddress(p fieldPath, m layout.Machine, ips map[string]int, i int) {
	r := k.layout
	if m.HostIP == "" {
		r.fail(p.With("hostip"), "layout/hostip", "the machine has no address", "write its IPv4 address")
		return
	}
	r.failIf(badIPv4(m.HostIP), p.With("hostip"), "layout/hostip", "write the machine's IPv4 address")
	if a, err := netip.ParseAddr(m.HostIP); err == nil && a.IsLoopback() {
		r.warn(p.With("hostip"), "layout/loopback", m.HostIP+" refers to a different machine on each machine", "write the address at which pods and the other machines reach it")
	}
	if j, ok := ips[m.HostIP]; ok {
		r.fail(p.With("hostip"), "layout/duplicate-hostip", fmt.Sprintf("%s is already the address of machine-list[%d]%s", m.HostIP, j, lineOf(r.doc, fieldPath{"machine-list", j, "hostip"})),
			"remove one of the two, or correct its address")
		return
	}
	ips[m.HostIP] = i
}

func (k *checker) checkType(p fieldPath, m layout.Machine) {
	if m.SKU == "" {
		remedy := "describe its hardware in machine-sku, and write the name here"
		if len(k.c.Layout.MachineSKU) > 0 {
			remedy = "write one of: " + joinKeys(k.c.Layout.MachineSKU)
		}
		k.layout.fail(p.With("machine-type"), "layout/unknown-sku", "the machine has no machine-type", remedy)
		return
	}
	if _, ok := k.c.Layout.MachineSKU[m.SKU]; ok {
		return
	}
	remedy := "add it to machine-sku"
	if len(k.c.Layout.MachineSKU) > 0 {
		remedy = "write one of: " + joinKeys(k.c.Layout.MachineSKU)
	}
	if near := strictyaml.Nearest(m.SKU, skuNames(k.c.Layout)); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	k.layout.fail(p.With("machine-type"), "layout/unknown-sku", fmt.Sprintf("there is no SKU %q in machine-sku", m.SKU), remedy)
}

// checkControlPlane checks all machines together: the existence and the number of masters, and whether a machine runs jobs.
func (k *checker) checkControlPlane() {
	r, p := k.layout, fieldPath{"machine-list"}
	if len(k.c.Layout.MachineList) == 0 {
		return
	}
	masters := k.c.ControlPlane()
	switch n := len(masters); {
	case n == 0:
		r.fail(p, "layout/no-master", "no machine runs the control plane", "give one machine the role master")
	case n%2 == 0:
		r.warn(p, "layout/even-masters", fmt.Sprintf("%d masters have %d etcd members: an even number tolerates no more failures than %d", n, n, n-1), "use 1, 3 or 5 masters")
	case n > 7:
		r.warn(p, "layout/many-masters", fmt.Sprintf("%d etcd members make every write slow", n), "use 3 or 5 masters")
	}
	// Ignore machines with an unknown role, because another finding reports them.
	unknown := func(m machine) bool {
		return len(m.Roles) == 0 || slices.ContainsFunc(m.Roles, func(r string) bool { _, ok := k.c.Roles.Roles[r]; return !ok })
	}
	mayWork := func(m machine) bool { return k.c.runsWorkloads(m) || unknown(m) }
	if len(masters) > 0 && !slices.ContainsFunc(k.c.Layout.MachineList, mayWork) {
		r.warn(p, "layout/no-worker", "no machine runs jobs", "give at least one machine the role worker")
	}
}

func (k *checker) checkGPUVendors() {
	types := map[string]bool{}
	for _, m := range k.c.Layout.MachineList {
		if g := k.c.Layout.MachineSKU[m.SKU].GPU; g != nil {
			types[gpuVendor(g.Type)] = true
		}
	}
	if len(types) > 1 {
		k.layout.warn(fieldPath{"machine-list"}, "layout/gpu-vendors", "the machines have GPUs of more than one vendor: "+joinKeys(types), "jobs choose by SKU; give each vendor a separate virtual cluster")
	}
}

func gpuVendor(model string) string {
	switch m := strings.ToLower(model); {
	case (&layout.GPU{Type: model}).AMD(), strings.Contains(m, "instinct"):
		return "AMD"
	case strings.HasPrefix(m, "pci-1da3"), strings.Contains(m, "gaudi"):
		return "Habana"
	}
	return "NVIDIA"
}

func (k *checker) checkSSH(r *reporter, p fieldPath, s layout.SSH) {
	if has(r.doc, s.Port != 0, p.With("port")...) {
		r.failIf(badPort(s.Port), p.With("port"), "layout/ssh-port", "the usual port is 22")
	}
	if s.JumpHost != "" {
		r.failIf(badJumpHosts(s.JumpHost), p.With("jump-host"), "layout/ssh-jump-host", "write user@gateway:22; several, outermost first, separated by commas")
	}
	if s.SecretName != "" && s.KeyFile == "" {
		r.warn(p.With("secret-name"), "layout/ssh-secret-name", "names a secret for the key, but there is no key", "add keyfile-path, or remove this line")
	}
	if s.SecretName != "" && len(validation.IsDNS1123Subdomain(s.SecretName)) > 0 {
		r.fail(p.With("secret-name"), "layout/ssh-secret-name", fmt.Sprintf("%q is not a valid name for a Kubernetes secret", s.SecretName), "use a-z, 0-9 and -")
	}
	if strings.ContainsFunc(s.Username, func(c rune) bool {
		return !unicode.IsPrint(c) || c == ' ' || strings.ContainsRune(":@\"'`“”‘’«»", c)
	}) {
		r.fail(p.With("username"), "layout/ssh-username", fmt.Sprintf("%q is not a login name", s.Username), "write the name alone")
	}
	if file := k.c.resolve(s.KeyFile); s.KeyFile != "" && r.doc != nil {
		r.warnMissing(p.With("keyfile-path"), "layout/no-file", file, "there is no file "+file, "a relative path starts in "+filepath.Clean(k.c.Dir))
	}
}
