package support

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/cluster"
)

//go:embed scripts/machine.sh
var machineScript string

// machineFiles returns the descriptions of the files about a machine, by name. Each file is a section of the script's output.
func machineFiles() map[string]string {
	return map[string]string{
		"os.txt": "Operating system, kernel and its command line, uptime, processors", "mounts.txt": "Mounts, swap, block devices",
		"disks.txt": "Free space and inodes (df)", "memory.txt": "Memory, and pressure of memory, processors and disks",
		"time.txt": "Clock and its synchronisation", "sysctl.txt": "Kernel settings", "modules.txt": "Kernel modules",
		"network.txt": "Addresses, routes, ports that are listened on, DNS", "units.txt": "State of kubelet, containerd, time service, and units that failed",
		"kubelet-journal.txt": "Journal of the kubelet", "containerd-journal.txt": "Journal of containerd", "time-journal.txt": "Journal of the time service",
		"kernel-log.txt": "The kernel's log (dmesg)", "paictl-journal.txt": "What paictl did on this machine",
		"etc-kubernetes.txt": "Files in /etc/kubernetes with owners, and expiry of certificates; no content", "nvidia-smi.txt": "GPUs, as nvidia-smi -q shows them",
	}
}

// machines runs the script on all machines, with one round trip for each machine.
func (b *bundle) machines(ctx context.Context) {
	if b.o.Spec == nil {
		b.archive.missing(PartMachines, b.o.MachinesErr)
		b.progress(PartMachines, b.o.MachinesErr.Error())
		return
	}
	mark := "@@" + rand.Text()
	since := ""
	if b.o.Since > 0 {
		since = b.since().UTC().Format("2006-01-02 15:04:05 UTC")
	}
	run := b.o.Run
	run.StepTimeout, run.Parallel, run.Limit = b.o.Limits.Machine, b.o.Limits.Parallel, nil
	st, err := cluster.QueryMachines(ctx, b.o.Spec, run, func(*engine.Node) string {
		return fmt.Sprintf("MARK='%s' SINCE='%s'\n%s", mark, since, machineScript)
	}, func(n *engine.Node, said []byte, err error) {
		b.machine(n.Hostname, mark, said, err)
	})
	if err != nil {
		b.archive.missing("machines/status.json", err)
		return
	}
	b.archive.add("machines/status.json", "Output of \"paictl cluster status\": machines, control plane, certificates and their expiry, the lock", func(w io.Writer) error {
		return writeJSON(w, st)
	})
}

func (b *bundle) machine(host, mark string, said []byte, err error) {
	folder, what := path.Join(PartMachines, host), machineFiles()
	found := sections(said, mark)
	if err != nil {
		b.archive.missing(folder, err)
	}
	for _, s := range found {
		if s.code == notThere { // the machine may not have it
			continue
		}
		name := path.Join(folder, s.name)
		if s.cut > 0 {
			b.archive.note("%s: its middle was left out", name)
		}
		b.archive.add(name, what[s.name], func(w io.Writer) error {
			if err := s.write(w); err != nil {
				return err
			}
			switch s.code {
			case "124", "137":
				return errors.New("the command didn't end in time; its output until then is included")
			case "":
				return errors.New("it was interrupted")
			}
			return nil
		})
	}
	if err != nil {
		b.progress(folder, err.Error())
		return
	}
	b.progress(folder, "done")
}

// notThere is the exit status of a section whose subject doesn't exist on the machine.
const notThere = "4"

type part struct {
	name string
	text []byte
	cut  int    // where its middle is omitted; 0 if it is complete
	code string // exit status, "" if it was interrupted
}

// sections splits the output of the script into sections. The sections share the output's memory.
func sections(said []byte, mark string) []part {
	var out []part
	begin, end := []byte("\n"+mark+" begin "), []byte("\n"+mark+" end ")
	for {
		_, rest, ok := bytes.Cut(said, begin)
		if !ok {
			return out
		}
		line, rest, _ := bytes.Cut(rest, []byte("\n"))
		next := bytes.Index(rest, begin)
		if next < 0 {
			next = len(rest)
		}
		p := part{text: rest[:next]}
		var head, tail int
		if _, err := fmt.Sscan(string(line), &p.name, &head, &tail); err == nil && len(p.text) == head+tail {
			p.cut = head
		}
		if i := bytes.LastIndex(p.text, end); i >= 0 {
			p.code = strings.TrimSpace(string(p.text[i+len(end):]))
			p.text = p.text[:i]
		}
		said = rest[next:]
		out = append(out, p)
	}
}

// write writes a section. If it omits the middle, it also omits the partial lines before and after the gap. Half a secret in a partial line would
// not be recognized.
func (p part) write(w io.Writer) error {
	if p.cut == 0 || p.cut > len(p.text) {
		_, err := w.Write(append(p.text, '\n'))
		return err
	}
	head, tail := p.text[:p.cut], p.text[p.cut:]
	head = head[:bytes.LastIndexByte(head, '\n')+1]
	_, tail, _ = bytes.Cut(tail, []byte("\n"))
	for _, text := range [][]byte{head, []byte(cutMark), tail, []byte("\n")} {
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

const cutMark = "[cut: the middle is left out here]\n"
