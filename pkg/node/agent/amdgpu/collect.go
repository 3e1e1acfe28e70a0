// Package amdgpu reads the descriptions and measurements of the machine's AMD GPUs from the files of the kernel's driver amdgpu. In: /sys. Out: a
// report every few seconds.
//
// If a GPU hangs, reading a file of the driver may block forever. Therefore the agent runs this package in a separate program, pai-agent amdgpu.
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

// Command is the first argument of pai-agent that runs this package.
const Command = "amdgpu"

// Run runs the program pai-agent amdgpu with the given arguments. Run writes reports as lines of JSON at an interval, until ctx ends.
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

// Collector reads the GPUs of a machine from the files of the driver.
type Collector struct {
	// Root is the folder with the machine's files.
	Root string
	Now  func() time.Time
	// counted holds the error counts at the time countedAt, by the bus of the GPU.
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

// Report reads all GPUs of the driver. If a GPU was lost from the bus, the report marks the GPU as lost or doesn't contain it.
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

// tellApart makes the UUIDs of GPUs unique, because the agent identifies GPUs by their UUIDs. GPUs with the same UUID receive a UUID that is made
// from the bus.
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

type device string

func (d device) read(file string) string { return text(filepath.Join(string(d), file)) }

func (d device) number(file string) (float64, bool) {
	return parseNumber(d.read(file))
}

// parseNumber parses a number. ok is false if the number is negative or can't be represented in JSON.
func parseNumber(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && n >= 0 && !math.IsInf(n, 0)
}

// id returns the PCI ID of the GPU's model, such as 74a1.
func (d device) id() string { return strings.TrimPrefix(d.read("device"), "0x") }

func (d device) describe(bus string, index int32) gpu.GPU {
	g := gpu.GPU{Index: index, Bus: bus, UUID: busUUID(bus), Model: layout.PCIModel("1002", d.id()), Lost: d.lost(), Facts: map[string]string{"device-id": d.id()}}
	// ROCm prints the same ID. Virtual functions and models before Vega 10 have no such ID.
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
	// The render node must be the first file, because its name identifies the GPU in metrics.
	for _, kind := range []string{"renderD", "card"} {
		for _, minor := range d.minors(kind) {
			file := fmt.Sprintf("/dev/dri/%s%d", kind, minor)
			g.Files = append(g.Files, gpu.File{Host: file, Container: file})
		}
	}
	return g
}

// lost reports whether all bits that the bus returns are 1, which means that the device has fallen off the bus. Other files of the device still
// contain the last known values.
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

// minors returns the minor numbers of the GPU's device files. kind is card or renderD.
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

// judge sets the facts from the KFD. If containers can't use the GPU, judge also sets the reason.
func (d device) judge(g *gpu.GPU, nodes map[int]node, readable bool) {
	render := d.minors("renderD")
	if len(render) == 0 {
		g.Unusable = "it has no device file /dev/dri/renderD*: see dmesg"
		return
	}
	// An MI300 can be split into partitions. This GPU's entry doesn't contain the partitions' device files.
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

// text returns the content of a file without the trailing newline. text returns "" for an unreadable file. Some models don't have all files, and a
// reset interrupts reads only temporarily.
func text(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
