package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// patience is how long nvidia-smi may take. On machines without a persistence daemon, it first initializes all GPUs.
const patience = time.Minute

// smi holds the output of nvidia-smi.
type smi struct {
	driver string
	cards  []card
}

// card is a GPU in the output of nvidia-smi. values contains only the values that nvidia-smi reports for the GPU.
type card struct {
	index             int
	uuid, name, bus   string
	mig               string // Enabled, Disabled, or "" if the GPU has no MIG mode
	values            map[string]float64
	instances         []instance
	links             int // NVLinks that are active
	linkErrors        map[string]float64
	linksRead, errors bool // whether nvidia-smi reported links and their errors
}

// instance is a MIG device in the output of nvidia-smi.
type instance struct {
	gi, ci int
	uuid   string
}

// askSMI runs nvidia-smi, and returns its output. It leaves out fields that the installed version doesn't support.
func (o *options) askSMI(ctx context.Context) (*smi, error) {
	base := []string{"index", "uuid", "name", "pci.bus_id", "driver_version"}
	rows, err := o.query(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	out := &smi{}
	for _, row := range rows {
		index, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi: the index of a GPU is %q", row[0])
		}
		out.driver = row[4]
		out.cards = append(out.cards, card{index: index, uuid: row[1], name: row[2], bus: bus(row[3]), values: map[string]float64{}, linkErrors: map[string]float64{}})
	}
	for _, f := range fields() {
		rows, err := o.query(ctx, []string{f.smi})
		if err != nil || len(rows) != len(out.cards) {
			continue
		}
		for i, row := range rows {
			if v, err := strconv.ParseFloat(row[0], 64); err == nil {
				out.cards[i].values[f.smi] = v
			} else if v, ok := map[string]float64{"Yes": 1, "No": 0}[row[0]]; ok {
				out.cards[i].values[f.smi] = v
			}
		}
	}
	if rows, err := o.query(ctx, []string{"mig.mode.current"}); err == nil && len(rows) == len(out.cards) {
		for i, row := range rows {
			if !strings.Contains(row[0], "N/A") {
				out.cards[i].mig = row[0]
			}
		}
	}
	if err := o.instances(ctx, out); err != nil {
		return nil, err
	}
	o.links(ctx, out)
	return out, nil
}

// query returns the values of the named fields for each GPU.
func (o *options) query(ctx context.Context, names []string) ([][]string, error) {
	said, err := output(ctx, o.smi, "--query-gpu="+strings.Join(names, ","), "--format=csv,noheader,nounits")
	if err != nil {
		return nil, err
	}
	var out [][]string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		row := strings.Split(line, ", ")
		if len(row) != len(names) {
			return nil, fmt.Errorf("%d fields instead of %d: %s", len(row), len(names), line)
		}
		out = append(out, row)
	}
	return out, nil
}

// log is the part of the output of nvidia-smi -q -x that describes instances. --query-gpu doesn't report instances.
type log struct {
	GPUs []struct {
		ID   string `xml:"id,attr"`
		UUID string `xml:"uuid"`
		MIG  []struct {
			GI   int    `xml:"gpu_instance_id"`
			CI   int    `xml:"compute_instance_id"`
			UUID string `xml:"uuid"`
		} `xml:"mig_devices>mig_device"`
	} `xml:"gpu"`
}

func (o *options) instances(ctx context.Context, s *smi) error {
	said, err := output(ctx, o.smi, "-q", "-x")
	if err != nil {
		return fmt.Errorf("nvidia-smi -q -x: %w", err)
	}
	var l log
	if err := xml.Unmarshal([]byte(said), &l); err != nil {
		return fmt.Errorf("nvidia-smi -q -x: %w", err)
	}
	named := s.names(ctx, o)
	for _, g := range l.GPUs {
		c := s.of(bus(g.ID))
		if c == nil {
			return fmt.Errorf("nvidia-smi -q -x has the GPU %s, and nvidia-smi --query-gpu doesn't", g.ID)
		}
		for i, m := range g.MIG {
			one := instance{gi: m.GI, ci: m.CI, uuid: m.UUID}
			if one.uuid == "" && i < len(named[c.uuid]) { // drivers before 550 have UUIDs only in the list
				one.uuid = named[c.uuid][i]
			}
			c.instances = append(c.instances, one)
		}
	}
	return nil
}

// names returns the UUIDs of instances, in the order of nvidia-smi -L. The keys are the UUIDs of the GPUs.
func (s *smi) names(ctx context.Context, o *options) map[string][]string {
	said, err := output(ctx, o.smi, "-L")
	if err != nil {
		return nil
	}
	out, of := map[string][]string{}, ""
	for line := range strings.Lines(said) {
		_, rest, ok := strings.Cut(line, "(UUID: ")
		uuid, _, closed := strings.Cut(rest, ")")
		switch {
		case !ok || !closed:
		case strings.HasPrefix(strings.TrimSpace(line), "MIG"):
			out[of] = append(out[of], uuid)
		default:
			of = uuid
		}
	}
	return out
}

// of returns the GPU at a PCI address, or nil if there is no such GPU.
func (s *smi) of(at string) *card {
	for i := range s.cards {
		if s.cards[i].bus == at {
			return &s.cards[i]
		}
	}
	return nil
}

// links reads the states of NVLinks and the numbers of their errors. GPUs without NVLink report neither.
func (o *options) links(ctx context.Context, s *smi) {
	for i := range s.cards {
		c := &s.cards[i]
		id := "--id=" + strconv.Itoa(c.index)
		if said, err := output(ctx, o.smi, "nvlink", "--status", id); err == nil {
			c.linksRead = true
			for line := range strings.Lines(said) {
				if strings.HasPrefix(strings.TrimSpace(line), "Link ") && strings.Contains(line, "GB/s") {
					c.links++
				}
			}
		}
		if said, err := output(ctx, o.smi, "nvlink", "--errorcounters", id); err == nil {
			for line := range strings.Lines(said) {
				for _, kind := range []string{replays, recoveries, flits} {
					_, value, ok := strings.Cut(line, kind+": ")
					if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); ok && err == nil {
						c.linkErrors[kind] += n
						c.errors = true
					}
				}
			}
		}
	}
}

// These are nvidia-smi's names for errors of NVLinks.
const (
	replays    = "Replay Errors"
	recoveries = "Recovery Errors"
	flits      = "CRC Errors"
)

// output runs a program, and returns its output. The program may hang because of its driver; output doesn't wait for such a program.
func output(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	var said, also bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &also
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	select {
	case err := <-ended:
		if err != nil {
			// nvidia-smi writes its errors to standard output.
			return "", fmt.Errorf("%w: %s", err, firstLine(also.String()+said.String()))
		}
		return said.String(), nil
	case <-time.After(patience + 5*time.Second):
		return "", errors.New("it hangs: a GPU or its driver hangs")
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
