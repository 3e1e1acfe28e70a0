package extender

import (
	"fmt"
	"time"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/strictyaml"
)

// configuration is one that was accepted.
type configuration struct {
	text  string
	cells cell.Config
	// forceBind is how often a pod with a place is asked about before it is bound here; block is for
	// how long a pod that waits holds up the next one.
	forceBind  int
	block      time.Duration
	generation int64
}

// settings are the fields of HiveD's file that are not about cells. Others, such as the address
// of its web server, are flags here.
type settings struct {
	ForcePodBindThreshold                *int `yaml:"forcePodBindThreshold"`
	WaitingPodSchedulingBlockMilliSecond *int `yaml:"waitingPodSchedulingBlockMilliSec"`
}

// defaultForceBind is HiveD's. maxBlock keeps a mistake from stopping the scheduler.
const (
	defaultForceBind = 3
	maxBlock         = 10 * time.Second
)

// parseConfiguration reads HiveD's YAML. Without errors among the findings it can be used.
func parseConfiguration(file, text string) (*configuration, strictyaml.Findings) {
	return parseWithin(file, text, 0)
}

// parseWithin refuses more cells than a limit; 0 is none.
func parseWithin(file, text string, most int) (*configuration, strictyaml.Findings) {
	cells, findings := config.ParseWithin(file, []byte(text), most)
	c := &configuration{text: text, cells: cells, forceBind: defaultForceBind}
	var s settings
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		if len(findings.Errors()) == 0 {
			findings = append(findings, strictyaml.Finding{File: file, Rule: "scheduler/settings", Severity: strictyaml.Error, Message: err.Error()})
		}
		return c, findings
	}
	complain := func(field, message string) {
		findings = append(findings, strictyaml.Finding{File: file, Field: field, Rule: "scheduler/settings", Severity: strictyaml.Error, Message: message})
	}
	if v := s.ForcePodBindThreshold; v != nil {
		if c.forceBind = *v; *v < 1 {
			complain("forcePodBindThreshold", fmt.Sprintf("%d is less than 1", *v))
		}
	}
	if v := s.WaitingPodSchedulingBlockMilliSecond; v != nil {
		if c.block = time.Duration(*v) * time.Millisecond; *v < 0 || c.block > maxBlock {
			complain("waitingPodSchedulingBlockMilliSec", fmt.Sprintf("%d is not from 0 to %d", *v, maxBlock.Milliseconds()))
		}
	}
	return c, findings
}

// configChanged takes over the ConfigMap as it is now.
func (e *Extender) configChanged(string) {
	obj := e.configObject()
	if obj == nil {
		e.log.Warn("the configuration is gone; the last one stays", "configMap", e.opts.ConfigMap)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	text, there := obj.Data[e.opts.ConfigKey]
	if there && e.active != nil && e.active.text == text {
		e.problem = ""
		return
	}
	problem := fmt.Sprintf("the ConfigMap %s has no key %s", e.opts.ConfigMap, e.opts.ConfigKey)
	if there {
		problem = e.applyConfig(text)
	}
	if problem == e.problem && problem != "" {
		return
	}
	e.problem = problem
	leading := e.state != nil
	if problem != "" {
		e.log.Error("the configuration is refused", "problem", problem)
		if leading || e.active == nil {
			e.events.Event(obj, corev1.EventTypeWarning, api.ReasonConfigRefused, short(problem))
		}
		return
	}
	e.log.Info("the configuration is in use", "generation", e.active.generation, "virtualClusters", len(e.active.cells.VirtualClusters))
	if leading {
		e.events.Event(obj, corev1.EventTypeNormal, api.ReasonConfigApplied, "the configuration is in use")
	}
}

// applyConfig uses a text, or returns why it doesn't.
func (e *Extender) applyConfig(text string) string {
	next, findings := parseConfiguration(e.opts.ConfigKey, text)
	if errs := findings.Errors(); len(errs) > 0 {
		return errs.Error()
	}
	next.generation = 1
	if e.active != nil {
		next.generation = e.active.generation + 1
	}
	if s := e.state; s != nil {
		core, downgrades, err := s.core.Reconfigure(next.cells)
		if err != nil {
			return err.Error()
		}
		s.core, s.types, s.generation = core, next.cells.Types, next.generation
		s.nodes = map[string]*node{}
		e.syncNodes(s)
		s.apply(downgrades)
		s.freed = s.now()
	}
	e.active = next
	return ""
}

func (e *Extender) configObject() *corev1.ConfigMap {
	obj, _, _ := e.config.GetStore().GetByKey(e.opts.Namespace + "/" + e.opts.ConfigMap)
	c, _ := obj.(*corev1.ConfigMap)
	return c
}

// short cuts a text to what an event may hold.
func short(text string) string {
	const most = 1000
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
