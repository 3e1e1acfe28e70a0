package toolkit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// Instance is a part of a GPU that the hardware isolates from the other parts (MIG). To use an instance, a container needs permission to open three
// device files: the files of the instance's two capabilities and the file of the GPU.
type Instance struct {
	UUID string
	// File is the name of the GPU's device file, such as nvidia0. The names of the driver's capabilities contain the same number.
	File string
	// GI and CI are the numbers of the GPU instance and the compute instance.
	GI, CI int
}

// capability is a device file of the driver whose permissions control an operation.
type capability struct {
	minor uint32
	mode  uint32
}

func (c capability) device() string { return fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", c.minor) }

// capabilities returns the two capabilities of an instance. The first capability belongs to the GPU instance, and the second to the compute instance.
func (t *Toolkit) capabilities(i Instance) (out []capability, err error) {
	number, ok := strings.CutPrefix(i.File, "nvidia")
	if _, err := strconv.ParseUint(number, 10, 16); !ok || err != nil {
		return nil, fmt.Errorf("its GPU has no device file of NVIDIA: %q", i.File)
	}
	folder := fmt.Sprintf("gpu%s/mig/gi%d", number, i.GI)
	for _, file := range []string{folder + "/access", fmt.Sprintf("%s/ci%d/access", folder, i.CI)} {
		c, err := t.capability(file)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (t *Toolkit) capability(file string) (c capability, err error) {
	path := filepath.Join(t.Proc, "driver/nvidia/capabilities", file)
	data, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	known := map[string]uint32{}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil {
			known[key] = uint32(n)
		}
	}
	minor, ok := known["DeviceFileMinor"]
	mode, also := known["DeviceFileMode"]
	if !ok || !also {
		return c, fmt.Errorf("%s reports no device file", path)
	}
	return capability{minor, mode & 0o777}, nil
}

func (t *Toolkit) major() (uint32, error) {
	data, err := os.ReadFile(filepath.Join(t.Proc, "devices"))
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if number, name, _ := strings.Cut(strings.TrimSpace(lines.Text()), " "); name == "nvidia-caps" {
			n, err := strconv.ParseUint(number, 10, 12)
			return uint32(n), err
		}
	}
	return 0, errors.New("the driver offers no capabilities (nvidia-caps in /proc/devices)")
}

// capabilityDevices creates the device files of an instance. The driver doesn't create these files, and the machine may not contain another program
// that creates device files.
func (t *Toolkit) capabilityDevices(i Instance) error {
	list, err := t.capabilities(i)
	if err != nil {
		return err
	}
	return t.makeDevices(list)
}

// ConfigDevices creates the device files for splitting a GPU. ConfigDevices ignores errors, because NVIDIA's library returns an error if the files
// are missing.
func (t *Toolkit) ConfigDevices() {
	for _, file := range []string{"mig/config", "mig/monitor"} {
		if c, err := t.capability(file); err == nil {
			_ = t.makeDevices([]capability{c})
		}
	}
}

func (t *Toolkit) makeDevices(list []capability) error {
	major, err := t.major()
	if err != nil {
		return err
	}
	for _, c := range list {
		path, number := filepath.Join(t.Root, c.device()), unix.Mkdev(major, c.minor)
		var is unix.Stat_t
		err := unix.Lstat(path, &is)
		if err == nil && is.Mode&unix.S_IFMT == unix.S_IFCHR && is.Rdev == number {
			continue
		}
		if err == nil {
			if err := os.Remove(path); err != nil { // it belongs to a previous driver
				return err
			}
		}
		// The mode is 0755 because users of the machine may list the files.
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := unix.Mknod(path, unix.S_IFCHR|c.mode, int(number)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make %s: %w", path, err)
		}
		if err := os.Chmod(path, fs.FileMode(c.mode)); err != nil { // regardless of the umask
			return err
		}
	}
	return nil
}

// check returns an error unless the edits contain exactly the device files that an instance requires. These are the file of the GPU and the files of
// the instance's two capabilities.
func (t *Toolkit) check(i Instance, e specs.ContainerEdits) error {
	list, err := t.capabilities(i)
	if err != nil {
		return err
	}
	want := []string{"/dev/" + i.File}
	for _, c := range list {
		want = append(want, c.device())
	}
	var got []string
	for _, d := range e.DeviceNodes {
		got = append(got, d.Path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("a container with the instance %s would get the device files %v, but should get %v", i.UUID, got, want)
	}
	return nil
}
