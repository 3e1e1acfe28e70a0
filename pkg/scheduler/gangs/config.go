package gangs

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/config"
)

type configuration struct {
	text       string
	cells      cell.Config
	generation int64
}

// parseConfiguration parses a configuration in HiveD's YAML. The result is valid if no finding is an error.
func parseConfiguration(file, text string) (*configuration, strictyaml.Findings) {
	return parseWithin(file, text, 0)
}

// parseWithin works like parseConfiguration, but rejects a configuration with more than most cells. 0 means unlimited.
func parseWithin(file, text string, most int) (*configuration, strictyaml.Findings) {
	cells, findings := config.ParseWithin(file, []byte(text), most)
	return &configuration{text: text, cells: cells}, findings
}

// configChanged applies the current ConfigMap to the state.
func (b *Store) configChanged(string) {
	obj := b.configObject()
	if obj == nil {
		b.log.Warn("the configuration is gone; the last one stays in use", "configMap", b.opts.ConfigMap)
		return
	}
	defer b.signal()
	b.mu.Lock()
	defer b.unlock()
	text, there := obj.Data[b.opts.ConfigKey]
	if there && b.active != nil && b.active.text == text {
		b.problem = ""
		return
	}
	problem := fmt.Sprintf("the ConfigMap %s has no key %s", b.opts.ConfigMap, b.opts.ConfigKey)
	if there {
		problem = b.applyConfig(text)
	}
	if problem == b.problem && problem != "" {
		return
	}
	b.problem = problem
	leading := b.state != nil
	if problem != "" {
		b.log.Error("the configuration is refused", "problem", problem)
		if leading || b.active == nil {
			b.say(obj, corev1.EventTypeWarning, api.ReasonConfigRefused, short(problem))
		}
		return
	}
	b.log.Info("the configuration is in use", "generation", b.active.generation, "virtualClusters", len(b.active.cells.VirtualClusters))
	if leading {
		b.say(obj, corev1.EventTypeNormal, api.ReasonConfigApplied, "the configuration is in use")
	}
}

// applyConfig applies a configuration. If the configuration is invalid, applyConfig returns the reason.
func (b *Store) applyConfig(text string) string {
	next, findings := parseConfiguration(b.opts.ConfigKey, text)
	if errs := findings.Errors(); len(errs) > 0 {
		return errs.Error()
	}
	next.generation = 1
	if b.active != nil {
		next.generation = b.active.generation + 1
	}
	if s := b.state; s != nil {
		s.dropUnfinished("another configuration has come")
		core, downgrades, err := s.core.Reconfigure(next.cells)
		if err != nil {
			return err.Error()
		}
		s.core, s.types, s.generation = core, next.cells.Types, next.generation
		s.nodes, s.admitted = map[string]*node{}, nil
		b.syncNodes(s)
		for _, p := range s.pods {
			if p.state == api.Ignored {
				why, _, _ := strings.Cut(p.reason, untilItEnds)
				s.keep(p, why)
			}
		}
		s.apply(downgrades)
		s.epoch++
	}
	b.active = next
	return ""
}

func (b *Store) configObject() *corev1.ConfigMap {
	obj, _, _ := b.config.GetStore().GetByKey(b.opts.Namespace + "/" + b.opts.ConfigMap)
	c, _ := obj.(*corev1.ConfigMap)
	return c
}

// short shortens a text for an event.
func short(text string) string {
	const most = 1000
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
