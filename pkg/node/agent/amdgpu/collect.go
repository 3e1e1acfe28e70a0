// Package amdgpu reads the descriptions and measurements of the machine's AMD GPUs from the files of the kernel's driver amdgpu.
// In: /sys. Out: a report every few seconds.
//
// If a GPU hangs, reading a file of its driver may never return. So the agent runs this package as a separate program, pai-agent amdgpu.
package amdgpu

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// Command is the first argument of pai-agent that makes it run this package.
const Command = "amdgpu"

// Run runs the program pai-agent amdgpu with its arguments. It writes reports as lines of JSON at an interval, until ctx ends.
func Run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("pai-agent "+Command, flag.ContinueOnError)
	root := flags.String("root", "/", "folder where the machine's root is mounted")
	every := flags.Duration("every", 2*time.Second, "how often it writes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	c := &Collector{Root: *root, Now: time.Now}
	return c.Watch(ctx, *every, func(r *gpu.Report) error { return lines.Encode(r) })
}

// Collector reads the GPUs of one machine from the files of the driver.
type Collector struct {
	// Root is the folder with the machine's files.
	Root string
	Now  func() time.Time
	// counted holds the error counts of GPUs by bus, as read at countedAt.
	counted   map[string]errorCounts
	countedAt time.Time
}

// Watch calls send with a report at each interval, until ctx ends.
func (c *Collector) Watch(ctx context.Context, every time.Duration, send func(*gpu.Report) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		r, err := c.Report()
		if err != nil {
			return err
		}
		if err := send(r); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return nil
}

// Report reads all GPUs of the driver. If the bus has lost a GPU, the report doesn't contain the GPU, or marks it as lost.
func (c *Collector) Report() (*gpu.Report, error) {
	folder := c.sys("bus/pci/drivers/amdgpu")
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the driver amdgpu isn't loaded: see dmesg, and modprobe amdgpu")
	}
	if err != nil {
		return nil, err
	}
	out := &gpu.Report{Driver: cmp.Or(text(c.sys("module/amdgpu/version")), text(filepath.Join(c.Root, "proc/sys/kernel/osrelease")))}
	nodes, readable := c.kfdNodes()
	count := c.counted == nil || c.Now().Sub(c.countedAt) >= countEvery
	if count {
		c.countedAt = c.Now()
	}
	counted := map[string]errorCounts{}
	for _, e := range entries { // in the order of their buses
		d := device(filepath.Join(folder, e.Name()))
		if !isBus(e.Name()) || d.read("vendor") != "0x1002" || !layout.AMDGPU(d.id(), d.read("class")) {
			continue
		}
		g := d.describe(e.Name(), int32(len(out.GPUs)))
		if g.Lost {
			out.GPUs = append(out.GPUs, g)
			continue
		}
		g.Values = d.measure()
		d.judge(&g, nodes, readable)
		errs := c.counted[g.Bus]
		if count {
			errs = d.countErrors(errs)
		}
		errs.write(g.Values)
		counted[g.Bus] = errs
		out.GPUs = append(out.GPUs, g)
	}
	c.counted = counted
	tellApart(out.GPUs)
	return out, nil
}

func (c *Collector) sys(path string) string { return filepath.Join(c.Root, "sys", path) }

// isBus reports whether a name in a driver's folder is the address of a PCI device, such as 0000:c1:00.0.
func isBus(name string) bool { return strings.Count(name, ":") == 2 && strings.Contains(name, ".") }

// tellApart makes the UUIDs of GPUs unique, because the agent identifies GPUs by their UUIDs. A GPU whose UUID occurs twice gets a UUID made from its
// bus.
func tellApart(gpus []gpu.GPU) {
	seen := map[string]int{}
	for _, g := range gpus {
		seen[g.UUID]++
	}
	for i := range gpus {
		if g := &gpus[i]; seen[g.UUID] > 1 {
			g.UUID = busUUID(g.Bus)
		}
	}
}

func busUUID(bus string) string { return "GPU-" + bus }

// device is the path of a PCI device's folder.
type device string

func (d device) read(file string) string { return text(filepath.Join(string(d), file)) }

// number reads a file that contains a number.
func (d device) number(file string) (float64, bool) {
	return parseNumber(d.read(file))
}

// parseNumber parses a number. ok is false if the number is negative, or if JSON can't represent it.
func parseNumber(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && n >= 0 && !math.IsInf(n, 0)
}

// id returns the PCI ID of the GPU's model, such as 74a1.
func (d device) id() string { return strings.TrimPrefix(d.read("device"), "0x") }

// describe returns the description of the GPU: its model, UUID, memory, device files and labels.
func (d device) describe(bus string, index int32) gpu.GPU {
	g := gpu.GPU{Index: index, Bus: bus, UUID: busUUID(bus), Model: layout.PCIModel("1002", d.id()), Lost: d.lost(), Facts: map[string]string{"device-id": d.id()}}
	// ROCm prints the same ID. Virtual functions, and models before Vega 10, don't have such an ID.
	if id := d.read("unique_id"); strings.Trim(id, "0") != "" {
		g.UUID = "GPU-" + id
	}
	if name := d.read("product_name"); name != "" {
		g.Facts["product-name"] = name
	}
	if total, ok := d.number("mem_info_vram_total"); ok {
		g.Memory = uint64(total)
	}
	if node, err := strconv.ParseInt(d.read("numa_node"), 10, 64); err == nil && node >= 0 {
		g.NUMA = &node
	}
	// The render node comes first, because it names the GPU in metrics.
	for _, kind := range []string{"renderD", "card"} {
		for _, minor := range d.minors(kind) {
			file := fmt.Sprintf("/dev/dri/%s%d", kind, minor)
			g.Files = append(g.Files, gpu.File{Host: file, Container: file})
		}
	}
	return g
}

// lost reports whether the bus returns only 1 bits, which means that the device has fallen off the bus. Other files of the device still contain the
// last known values.
func (d device) lost() bool {
	f, err := os.Open(filepath.Join(string(d), "config"))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	ids := make([]byte, 4)
	_, err = io.ReadFull(f, ids)
	return err == nil && string(ids) == "\xff\xff\xff\xff"
}

// minors returns the minor numbers of the GPU's device files of a kind, card or renderD.
func (d device) minors(kind string) (out []int) {
	entries, err := os.ReadDir(filepath.Join(string(d), "drm"))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), kind); ok {
			if n, err := strconv.Atoi(rest); err == nil {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// judge sets the facts from the KFD, and the reason if containers can't use the GPU.
func (d device) judge(g *gpu.GPU, nodes map[int]node, readable bool) {
	render := d.minors("renderD")
	if len(render) == 0 {
		g.Unusable = "it has no device file /dev/dri/renderD*: see dmesg"
		return
	}
	// An MI300 can be split into partitions. They have device files that this GPU's entry doesn't contain.
	if split := d.read("current_compute_partition"); split != "" && split != "SPX" {
		g.Unusable = "it is split into partitions (" + split + "), which can't be allocated; write SPX into its current_compute_partition"
		return
	}
	n, known := nodes[render[0]]
	if !known {
		if readable {
			g.Unusable = "the driver doesn't offer it for computing (/sys/class/kfd): see dmesg"
		}
		return
	}
	for name, fact := range n.facts() {
		g.Facts[name] = fact
	}
}

// text returns the content of a file without its trailing newline. It returns "" for a file that can't be read, because some models don't have every
// file, and because a read that a reset interrupts succeeds later.
func text(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
