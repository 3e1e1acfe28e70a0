package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Paths of files in a task's container.
const (
	ScriptFile = spec.Home + "/runtime.d/runtime_env.sh"
	PeersFile  = spec.Home + "/runtime.d/peers.json"
	HostFile   = spec.Home + "/hostfile"
)

// PeersJSON returns all tasks as JSON, with the same data as the variables.
func (l *Layout) PeersJSON() ([]byte, error) {
	address, port := l.Master()
	data, err := json.Marshal(struct {
		Attempt    int    `json:"attempt"`
		Own        int    `json:"self"` // index in tasks
		World      int    `json:"worldSize"`
		MasterAddr string `json:"masterAddr"`
		MasterPort int    `json:"masterPort"`
		Tasks      []Task `json:"tasks"`
	}{l.Self.Attempt, l.Own, l.World, address, port, l.Tasks})
	return append(data, '\n'), err
}

// Hostfile returns a hostfile for mpirun, with one line per task. It uses the names from the ssh plugin's configuration, which
// sets the port of each name.
func (l *Layout) Hostfile() []byte {
	var b bytes.Buffer
	for i := range l.Tasks {
		fmt.Fprintf(&b, "%s slots=%d\n", l.Tasks[i].Alias(), l.Tasks[i].LocalWorldSize)
	}
	return b.Bytes()
}

// Comments around the runtime's lines in /etc/hosts. A restarted runtime replaces the lines between these comments.
const (
	hostsBegin = "# pai-runtime: tasks of this job\n"
	hostsEnd   = "# pai-runtime: end\n"
)

// Hosts returns /etc/hosts with the names of all tasks. On the host network, two tasks on one machine have the same address, so
// both short names map to this address.
func (l *Layout) Hosts(old []byte) []byte {
	text := string(old)
	if before, rest, ok := strings.Cut(text, hostsBegin); ok {
		_, after, _ := strings.Cut(rest, hostsEnd)
		text = before + after
	}
	var b bytes.Buffer
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(hostsBegin)
	for i := range l.Tasks {
		t := &l.Tasks[i]
		if t.Address == "" {
			continue
		}
		names := t.Aliases()
		if t.Name != "" {
			names = append([]string{t.Name}, names...)
		}
		fmt.Fprintf(&b, "%s\t%s\n", t.Address, strings.Join(names, " "))
	}
	b.WriteString(hostsEnd)
	return b.Bytes()
}

// Write writes all files below root. root is "" except in tests.
func (l *Layout) Write(root string, vars []Var) error {
	data, err := l.PeersJSON()
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{PeersFile, data}, {HostFile, l.Hostfile()}, {ScriptFile, Script(vars)}} {
		name := filepath.Join(root, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
