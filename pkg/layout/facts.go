package layout

import (
	"bytes"
	_ "embed" // the discovery script
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

//go:embed discover.sh
var discoverScript string

// DiscoverScript returns the POSIX sh script that collects the facts of a machine. The script changes nothing and runs as any user. ParseFacts reads
// its output.
func DiscoverScript() string { return discoverScript }

// Facts are the facts that a machine reports about itself. A field is empty if the machine didn't report the fact.
type Facts struct {
	Hostname  string `json:"hostname"`
	OSID      string `json:"os-id"`      // ubuntu, debian, …
	OSVersion string `json:"os-version"` // 22.04
	OSName    string `json:"os-name"`    // the name that the system gives itself
	Kernel    string `json:"kernel"`
	Arch      string `json:"arch"` // Go's name: amd64, arm64

	VCores   int    `json:"vcores"` // logical processors online
	CPUModel string `json:"cpu-model"`
	MemKiB   int64  `json:"mem-kib"` // the memory that the kernel manages, which is less than the installed memory
	SwapKiB  int64  `json:"swap-kib"`

	Disks       []BlockDevice `json:"disks,omitempty"`
	Filesystems []Filesystem  `json:"filesystems,omitempty"` // the filesystems of / and /var/lib
	Addresses   []Address     `json:"addresses,omitempty"`   // the addresses of global scope
	DefaultLink string        `json:"default-interface,omitempty"`
	DNS         []string      `json:"dns,omitempty"` // never a loopback address
	Time        time.Time     `json:"time"`          // the machine's clock, to the millisecond
	TimeSource  string        `json:"time-source,omitempty"`
	TimeSynced  string        `json:"time-synced,omitempty"` // yes, no, or "" if unknown
	Cgroup      string        `json:"cgroup,omitempty"`      // v1, hybrid, v2
	Runtimes    []Runtime     `json:"runtimes,omitempty"`
	PCIGPUs     []PCIDevice   `json:"pci-gpus,omitempty"` // only the GPUs of vendors that make accelerators
	NVIDIA      []NVIDIAGPU   `json:"nvidia,omitempty"`   // as the driver lists them
	Driver      string        `json:"nvidia-driver,omitempty"`
	DriverError string        `json:"nvidia-driver-error,omitempty"` // the error message of nvidia-smi
	// The script collects the following facts about NVIDIA's driver only on machines with NVIDIA GPUs.
	NVSwitches    []PCIDevice `json:"nvswitches,omitempty"`
	DriverOrigin  string      `json:"nvidia-driver-origin,omitempty"` // package, runfile, or "" without a driver
	SecureBoot    string      `json:"secure-boot,omitempty"`          // on, off, or "" if the firmware doesn't support it
	Nouveau       bool        `json:"nouveau,omitempty"`              // whether the kernel's own driver is loaded
	KernelHeaders bool        `json:"kernel-headers,omitempty"`       // whether the headers of the running kernel are installed

	Infiniband []InfinibandPort `json:"infiniband,omitempty"`

	UID  int    `json:"uid"`
	Sudo string `json:"sudo"` // root, free, password, refused, missing
	// SudoError explains why the user couldn't become root with the password. The error contains the remedy.
	SudoError error `json:"-"`

	MachineID   string `json:"machine-id,omitempty"`
	ProductUUID string `json:"product-uuid,omitempty"` // only root may read it
	Product     string `json:"product,omitempty"`
	Vendor      string `json:"vendor,omitempty"`
	// Container is the container manager, such as systemd-nspawn, docker or lxc, if the machine is a container. A container shares the kernel and the
	// clock of its host. Container is empty on other machines.
	Container string `json:"container,omitempty"`
}

// BlockDevice is a disk as the kernel lists it.
type BlockDevice struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Kind  string `json:"kind"` // ssd, hdd, nvme
}

// Filesystem is the file system that contains a path.
type Filesystem struct {
	Path     string `json:"path"`
	TotalKiB int64  `json:"total-kib"`
	FreeKiB  int64  `json:"free-kib"`
	Device   string `json:"device"`
}

// Address is an IP address of an interface, with its prefix length.
type Address struct {
	Interface string `json:"interface"`
	CIDR      string `json:"cidr"`
}

// Runtime is a container runtime, or a kubelet, that is already installed.
type Runtime struct {
	Name  string `json:"name"`
	State string `json:"state"` // running, installed
}

// PCIDevice is an accelerator on the PCI bus. The kernel lists PCI devices even if no driver is installed.
type PCIDevice struct {
	Address string `json:"address"`
	Vendor  string `json:"vendor"` // four hex digits, 10de
	Device  string `json:"device"`
}

// NVIDIAGPU is a GPU as NVIDIA's driver describes it.
type NVIDIAGPU struct {
	Model  string `json:"model"` // NVIDIA A100-SXM4-80GB
	MemMiB int64  `json:"mem-mib,omitempty"`
	UUID   string `json:"uuid,omitempty"`
}

// InfinibandPort is an RDMA device and the state of its first port.
type InfinibandPort struct {
	Name  string `json:"name"`
	Layer string `json:"link-layer"` // InfiniBand, Ethernet
	Rate  string `json:"rate"`
	State string `json:"state"`
}

// These constants limit the output of the discovery script. A machine normally prints about 60 lines.
const (
	maxFactsBytes = 1 << 20
	maxValueBytes = 1024
	maxListed     = 512 // entries of one kind
)

// ParseFacts reads the output of the discovery script. ParseFacts fails if the output is incomplete or comes from another program. ParseFacts drops
// values that have an unexpected format.
func ParseFacts(answer []byte) (Facts, error) {
	var f Facts
	if len(answer) > maxFactsBytes {
		return f, fmt.Errorf("the machine's answer has %d bytes, which is too long", len(answer))
	}
	var begun, ended bool
	for raw := range bytes.SplitSeq(answer, []byte("\n")) {
		key, value, ok := strings.Cut(string(raw), "\t")
		if !ok {
			continue // a login banner, or an error message of the shell
		}
		value = clean(value)
		switch key {
		case "paictl-facts":
			if begun = value == "1"; !begun {
				return f, fmt.Errorf("the machine answers in protocol %q, but this paictl supports 1", value)
			}
		case "end":
			ended = value == "ok"
		default:
			if begun {
				f.set(key, value)
			}
		}
	}
	if !begun {
		return f, fmt.Errorf("the machine's answer is not that of the discovery script (first line: %q)", firstLine(answer))
	}
	if !ended {
		return f, fmt.Errorf("the machine's answer ended too early")
	}
	if f.Hostname == "" {
		return f, fmt.Errorf("the machine did not report its host name")
	}
	return f, nil
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return clean(string(line[:min(len(line), 80)]))
}

// clean makes a value safe to print and to store. The result is valid UTF-8 of limited length without control characters.
func clean(s string) string {
	if len(s) > maxValueBytes {
		s = s[:maxValueBytes]
	}
	s = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.TrimSpace(s)
}

func (f *Facts) set(key, value string) {
	switch key {
	case "hostname":
		f.Hostname = value
	case "kernel":
		f.Kernel = value
	case "arch":
		f.Arch = goArch(value)
	case "os-release":
		f.setOS(value)
	case "machine-id":
		f.MachineID = value
	case "product-uuid":
		f.ProductUUID = strings.ToLower(value)
	case "product":
		f.Product = value
	case "vendor":
		f.Vendor = value
	case "container":
		f.Container = value
	case "cpu-model":
		f.CPUModel = strings.Join(strings.Fields(value), " ")
	case "cpus":
		f.VCores = countRanges(value)
	case "cpu-count":
		f.VCores = int(number(value))
	case "memory-kib":
		f.MemKiB = number(value)
	case "swap-kib":
		f.SwapKiB = number(value)
	case "time":
		if ms := number(value); ms > 0 {
			f.Time = time.UnixMilli(ms).UTC()
		}
	case "time-source":
		f.TimeSource = value
	case "time-synced":
		f.TimeSynced = value
	case "default-interface":
		f.DefaultLink = value
	case "cgroup":
		f.Cgroup = value
	case "uid":
		f.UID = int(number(value))
	case "sudo":
		f.Sudo = value
	default:
		f.add(key, value)
	}
}

// add sets a fact, or appends to a list. add ignores unknown keys, because a later version of the script may send them.
func (f *Facts) add(key, value string) {
	w := strings.Fields(value)
	switch {
	case key == "disk" && len(w) == 3 && len(f.Disks) < maxListed:
		if sectors := number(w[1]); sectors > 0 && sectors < 1<<50 {
			f.Disks = append(f.Disks, BlockDevice{Name: w[0], Bytes: sectors * 512, Kind: diskKind(w[0], w[2])})
		}
	case key == "filesystem" && len(w) >= 3 && len(f.Filesystems) < maxListed:
		fs := Filesystem{Path: w[0], TotalKiB: number(w[1]), FreeKiB: number(w[2])}
		if len(w) > 3 {
			fs.Device = w[3]
		}
		f.Filesystems = append(f.Filesystems, fs)
	case key == "address" && len(w) == 2 && len(f.Addresses) < maxListed:
		f.Addresses = append(f.Addresses, Address{Interface: strings.TrimPrefix(w[0], "-"), CIDR: w[1]})
	case key == "dns" && len(w) > 0 && len(f.DNS) < 16:
		if a, err := netip.ParseAddr(w[0]); err == nil && !a.IsLoopback() && !a.IsUnspecified() && !slices.Contains(f.DNS, w[0]) {
			f.DNS = append(f.DNS, w[0])
		}
	case key == "runtime" && len(w) == 2 && len(f.Runtimes) < maxListed:
		f.Runtimes = append(f.Runtimes, Runtime{Name: w[0], State: w[1]})
	case key == "infiniband" && len(f.Infiniband) < maxListed:
		if p := strings.Split(value, "|"); len(p) == 4 {
			f.Infiniband = append(f.Infiniband, InfinibandPort{Name: p[0], Layer: p[1], Rate: p[2], State: strings.TrimSpace(p[3][strings.IndexByte(p[3], ':')+1:])})
		}
	default:
		f.addGPU(key, value)
	}
}

func (f *Facts) setOS(line string) {
	key, value, _ := strings.Cut(line, "=")
	value = strings.Trim(value, `"'`)
	switch key {
	case "ID":
		f.OSID = value
	case "VERSION_ID":
		f.OSVersion = value
	case "PRETTY_NAME":
		f.OSName = value
	}
}

// OS returns the system's name and version as one word, such as ubuntu22.04.
func (f Facts) OS() string {
	if f.OSID == "" {
		return "unknown"
	}
	return strings.ToLower(f.OSID + f.OSVersion)
}

func goArch(machine string) string {
	switch machine {
	case "x86_64", "amd64":
		return "amd64"
	case "aarch64", "arm64":
		return "arm64"
	}
	return machine
}

func diskKind(name, rotational string) string {
	switch {
	case strings.HasPrefix(name, "nvme"):
		return "nvme"
	case rotational == "1":
		return "hdd"
	}
	return "ssd"
}

// number parses a count. number returns 0 if the text isn't a count.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// countRanges returns the number of processors in a list in the kernel's format, such as "0-3,8-11". countRanges returns 0 for an invalid list.
func countRanges(list string) int {
	const limit = 65536
	total := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			return 0
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil {
				return 0
			}
		}
		if from < 0 || to < from || to >= limit {
			return 0
		}
		total += to - from + 1
	}
	return min(total, limit)
}
