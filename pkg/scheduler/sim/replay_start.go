package sim

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/config"
)

// run starts or restarts the scheduler. The new scheduler gets only the pods' annotations.
func (s *startStep) run(r *Stepper, line *Line) error {
	source, err := r.source(s.Config, line)
	if err != nil || line.Result != OK {
		return err
	}
	next := r.config
	if source != nil {
		c, findings := config.Parse(source.Name, source.Data)
		if len(findings.Errors()) > 0 {
			line.Result, line.Reason, line.Findings = ConfigRejected, reasons(findings.Errors()), findings
			return nil
		}
		next, line.Findings = c, findings
	}
	core := build(next, line)
	if core == nil {
		return nil
	}
	r.config, r.core = next, core
	healthy := []string(s.HealthyNodes)
	if healthy == nil {
		healthy = core.Nodes()
	}
	for _, n := range healthy {
		core.SetNode(n, true)
	}
	r.recover(line)
	return nil
}

// source returns the configuration for a start. nil means the configuration of the previous start.
func (r *Stepper) source(c *document, line *Line) (*Source, error) {
	switch {
	case c == nil && r.core != nil:
		return nil, nil
	case c == nil && r.Config != nil:
		return r.Config, nil
	case c == nil:
		return nil, errors.New("config: there is no configuration; write config: FILE, or give --config FILE")
	case c.written || strings.ContainsAny(c.text, "\n{") || strings.Contains(c.text, ": "):
		return &Source{fmt.Sprintf("%s:%d", r.file, c.line), []byte(c.text)}, nil
	}
	path := c.text
	if !filepath.IsAbs(path) && r.file != "-" {
		path = filepath.Join(filepath.Dir(r.file), path)
	}
	data, err := r.ReadFile(path)
	if err != nil {
		line.Result, line.Reason = ConfigRejected, fmt.Sprintf("%s:%d: config: %v; write the name of a file, or YAML", r.file, c.line, err)
		return nil, nil
	}
	return &Source{path, data}, nil
}

// reasons joins findings and their remedies.
func reasons(fs strictyaml.Findings) string {
	var out []string
	for _, f := range fs {
		text := f.String()
		if f.Remedy != "" {
			text += "; " + f.Remedy
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

// recover passes the running pods to a new scheduler, in the order in which they were accepted.
func (r *Stepper) recover(line *Line) {
	r.compact()
	for _, p := range r.pods {
		p.bind = nil
	}
	for _, p := range r.accepted {
		if err := r.readd(p, line); err != nil {
			line.Lost = append(line.Lost, LostPod{p.id, err.Error()})
			continue
		}
		line.Recovered = append(line.Recovered, p.id)
	}
}

// readd passes one pod to the scheduler. It uses only the pod's annotations.
func (r *Stepper) readd(p *replayPod, line *Line) error {
	request, err := annotation.ParseRequest(p.spec, p.name)
	if err != nil {
		return err
	}
	at, slot, err := annotation.ReadBound(request, notesOf(p.notes))
	if err != nil {
		return err
	}
	downgrades, err := r.core.Allocate(cell.PodID(p.id), request, at, slot)
	if err != nil {
		return err
	}
	p.request, p.slot = request, slot
	r.changed(downgrades, line)
	return nil
}

// build returns a scheduler. If the configuration is invalid, build writes the reason to line and returns nil.
func build(c cell.Config, line *Line) *cell.Scheduler {
	core, err := cell.New(c)
	if err != nil {
		line.Result, line.Reason = ConfigRejected, err.Error()
		return nil
	}
	return core
}
