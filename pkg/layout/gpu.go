package layout

import (
	"slices"
	"sort"
	"strings"
)

// PCI vendor ids of accelerators. Display controllers of other vendors are ignored, such as a server's management card.
const (
	pciNVIDIA = "10de"
	pciAMD    = "1002"
	pciHabana = "1da3"
)

// pciModels returns the names of common data-center GPUs by their PCI ids. paictl uses pciModels if no driver is installed, and for AMD's GPUs,
// because AMD's driver reports no names. The sources are the public PCI ID repository and the list amdgpu.ids of libdrm. The id 740c belongs to the
// MI250 and the MI250X, and the id 744c belongs to all models of the RX 7900.
func pciModels() map[string]string {
	return map[string]string{
		"10de:102d": "Tesla-K80",
		"10de:1b38": "Tesla-P40",
		"10de:15f8": "Tesla-P100-PCIE-16GB",
		"10de:15f9": "Tesla-P100-SXM2-16GB",
		"10de:1db1": "Tesla-V100-SXM2-16GB",
		"10de:1db4": "Tesla-V100-PCIE-16GB",
		"10de:1db5": "Tesla-V100-SXM2-32GB",
		"10de:1db6": "Tesla-V100-PCIE-32GB",
		"10de:1eb8": "Tesla-T4",
		"10de:2204": "NVIDIA-GeForce-RTX-3090",
		"10de:2684": "NVIDIA-GeForce-RTX-4090",
		"10de:20b0": "NVIDIA-A100-SXM4-40GB",
		"10de:20b2": "NVIDIA-A100-SXM4-80GB",
		"10de:20b5": "NVIDIA-A100-80GB-PCIe",
		"10de:20b7": "NVIDIA-A30",
		"10de:20f1": "NVIDIA-A100-PCIE-40GB",
		"10de:2235": "NVIDIA-A40",
		"10de:2236": "NVIDIA-A10",
		"10de:26b5": "NVIDIA-L40",
		"10de:26b9": "NVIDIA-L40S",
		"10de:27b8": "NVIDIA-L4",
		"10de:2321": "NVIDIA-H100-NVL",
		"10de:2330": "NVIDIA-H100-80GB-HBM3",
		"10de:2331": "NVIDIA-H100-PCIe",
		"10de:2335": "NVIDIA-H200",
		"10de:233b": "NVIDIA-H200-NVL",
		"10de:2342": "NVIDIA-GH200-480GB",
		"10de:2348": "NVIDIA-GH200-144G-HBM3e",
		"10de:2901": "NVIDIA-B200",
		"1002:738c": "AMD-Instinct-MI100",
		"1002:738e": "AMD-Instinct-MI100",
		"1002:7408": "AMD-Instinct-MI250X",
		"1002:740c": "AMD-Instinct-MI250X",
		"1002:740f": "AMD-Instinct-MI210",
		"1002:7448": "AMD-Radeon-Pro-W7900",
		"1002:7449": "AMD-Radeon-Pro-W7800-48GB",
		"1002:744a": "AMD-Radeon-Pro-W7900-Dual-Slot",
		"1002:744c": "AMD-Radeon-RX-7900",
		"1002:745e": "AMD-Radeon-Pro-W7800",
		"1002:74a0": "AMD-Instinct-MI300A",
		"1002:74a1": "AMD-Instinct-MI300X",
		"1002:74a2": "AMD-Instinct-MI308X",
		"1002:74a5": "AMD-Instinct-MI325X",
		"1002:74a9": "AMD-Instinct-MI300X-HF",
		"1002:74b5": "AMD-Instinct-MI300X-VF",
		"1002:74b6": "AMD-Instinct-MI308X",
		"1002:74b9": "AMD-Instinct-MI325X-VF",
		"1002:74bd": "AMD-Instinct-MI300X-HF",
		"1002:75a0": "AMD-Instinct-MI350X",
		"1002:75a3": "AMD-Instinct-MI355X",
	}
}

// amdModels returns the prefixes of the models of AMD's GPUs, in lower case.
func amdModels() []string { return []string{"amd", "instinct", "radeon", "pci-" + pciAMD} }
func otherModels() []string {
	return []string{"pci-" + pciHabana, "gaudi", "habana", "intel", "ascend", "huawei", "enflame"}
}

// NVIDIA reports whether the GPUs are NVIDIA's. Operators write models in many ways, mostly without the vendor, so NVIDIA returns true for every
// model without the prefix of another vendor.
func (g *GPU) NVIDIA() bool { return !g.AMD() && !g.begins(otherModels()) }

// AMD reports whether the model begins with one of the prefixes of AMD's GPUs.
func (g *GPU) AMD() bool { return g.begins(amdModels()) }

func (g *GPU) begins(models []string) bool {
	model := strings.ToLower(g.Type)
	return slices.ContainsFunc(models, func(m string) bool { return strings.HasPrefix(model, m) })
}

// PCIModel returns the model of a GPU for its vendor and device ids on the PCI bus, such as 1002 and 74a1. PCIModel makes a model from unknown ids.
func PCIModel(vendor, device string) string {
	if model, ok := pciModels()[vendor+":"+device]; ok {
		return model
	}
	return "pci-" + vendor + "-" + device
}

// AMDGPU reports whether an AMD device is a GPU for computing. The arguments are the device id and the class on the PCI bus, such as 74a1 and
// 0x120000. AMD sells GPUs and display adapters under one vendor id, so the class decides. The classes 0x0302 (3D controller), 0x0380 and 0x12
// (accelerator) mean a GPU. Cards for computing and display have class 0x0300 (display adapter), and count as GPUs if pciModels contains their id.
func AMDGPU(device, class string) bool {
	switch _, known := pciModels()[pciAMD+":"+device]; {
	case strings.HasPrefix(class, "0x0300"):
		return known
	default:
		return strings.HasPrefix(class, "0x03") || strings.HasPrefix(class, "0x12")
	}
}

// KnownNVIDIA returns the sorted PCI device ids of the NVIDIA GPUs in pciModels.
func KnownNVIDIA() []string {
	var out []string
	for id := range pciModels() {
		if device, ok := strings.CutPrefix(id, pciNVIDIA+":"); ok {
			out = append(out, device)
		}
	}
	sort.Strings(out)
	return out
}

// NVLink5 reports whether network cards manage the machine's NVSwitches, as on HGX B200. On older machines, the NVSwitches are PCI devices of NVIDIA.
func (f Facts) NVLink5() bool {
	return slices.ContainsFunc(f.NVSwitches, func(d PCIDevice) bool { return d.Vendor != pciNVIDIA })
}

// NVIDIADevices returns the machine's NVIDIA GPUs on the PCI bus.
func (f Facts) NVIDIADevices() []PCIDevice {
	var out []PCIDevice
	for _, d := range f.PCIGPUs {
		if d.Vendor == pciNVIDIA {
			out = append(out, d)
		}
	}
	return out
}

func (f *Facts) addGPU(key, value string) {
	switch key {
	case "pci-gpu":
		w := strings.Fields(value)
		if len(w) != 4 || len(f.PCIGPUs) >= maxListed {
			return
		}
		d := PCIDevice{Address: w[0], Vendor: strings.TrimPrefix(w[1], "0x"), Device: strings.TrimPrefix(w[2], "0x")}
		if isAccelerator(d, w[3]) {
			f.PCIGPUs = append(f.PCIGPUs, d)
		}
	case "nvswitch":
		if w := strings.Fields(value); len(w) == 3 && len(f.NVSwitches) < maxListed {
			f.NVSwitches = append(f.NVSwitches, PCIDevice{Address: w[0], Vendor: strings.TrimPrefix(w[1], "0x"), Device: strings.TrimPrefix(w[2], "0x")})
		}
	case "nvidia-origin":
		f.DriverOrigin = value
	case "secure-boot":
		f.SecureBoot = value
	case "nouveau":
		f.Nouveau = value == "loaded"
	case "kernel-headers":
		f.KernelHeaders = value != ""
	case "nvidia-smi":
		f.addSMI(value)
	case "nvidia-model":
		f.addModel(value)
	case "nvidia-version":
		// value: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 …"
		_, rest, _ := strings.Cut(value, "Kernel Module")
		for _, w := range strings.Fields(rest) {
			if f.Driver == "" && strings.Count(w, ".") >= 1 && w[0] >= '0' && w[0] <= '9' {
				f.Driver = w
			}
		}
	}
}

func isAccelerator(d PCIDevice, class string) bool {
	switch d.Vendor {
	case pciNVIDIA, pciHabana:
		return true
	case pciAMD:
		return AMDGPU(d.Device, class)
	}
	return false
}

// addSMI parses a line of nvidia-smi's output: "index, name, memory in MiB, driver, uuid". The line is an error message if nvidia-smi failed.
func (f *Facts) addSMI(line string) {
	p := strings.Split(line, ",")
	for i := range p {
		p[i] = strings.TrimSpace(p[i])
	}
	if len(p) != 5 || p[1] == "" || strings.Trim(p[0], "0123456789") != "" {
		if f.DriverError == "" && line != "" {
			f.DriverError = line
		}
		return
	}
	if len(f.NVIDIA) >= maxListed {
		return
	}
	f.NVIDIA = append(f.NVIDIA, NVIDIAGPU{Model: p[1], MemMiB: number(p[2]), UUID: p[4]})
	f.Driver = p[3]
}

// addModel adds a model from /proc/driver/nvidia. addModel ignores the model if nvidia-smi has listed GPUs, because nvidia-smi reports more details.
func (f *Facts) addModel(model string) {
	if len(f.NVIDIA) > 0 && f.NVIDIA[0].UUID != "" || model == "" || len(f.NVIDIA) >= maxListed {
		return
	}
	f.NVIDIA = append(f.NVIDIA, NVIDIAGPU{Model: model})
}

// GPU returns the machine's accelerators as the GPU of a SKU, or nil if the machine contains no accelerator. The driver's list takes precedence over
// the PCI bus, because the driver can't use a GPU that is missing from its list.
func (f Facts) GPU() *GPU {
	count := map[string]int{}
	switch {
	case len(f.NVIDIA) > 0:
		for _, g := range f.NVIDIA {
			count[modelWord(g.Model)]++
		}
	default:
		for _, d := range f.PCIGPUs {
			count[PCIModel(d.Vendor, d.Device)]++
		}
	}
	if len(count) == 0 {
		return nil
	}
	models, total := make([]string, 0, len(count)), 0
	for m, n := range count {
		models, total = append(models, m), total+n
	}
	sort.Slice(models, func(i, j int) bool {
		if count[models[i]] != count[models[j]] {
			return count[models[i]] > count[models[j]]
		}
		return models[i] < models[j]
	})
	return &GPU{Type: models[0], Count: total, Driver: f.Driver}
}

// modelWord returns the name of a model in the form of the label nvidia.com/gpu.product. For example, "NVIDIA A100-SXM4-80GB" becomes
// NVIDIA-A100-SXM4-80GB.
func modelWord(model string) string { return word(model, false) }

func word(s string, lower bool) string {
	if lower {
		s = strings.ToLower(s)
	}
	parts := strings.FieldsFunc(s, func(r rune) bool {
		return r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if out := strings.Trim(strings.Join(parts, "-"), "-."); out != "" {
		return out
	}
	return "unknown"
}
