package services

import (
	"cmp"
	"context"
	"strings"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/version"
)

// Check reports mistakes in the sections of services. The findings of the catalogue come first. Check also reports values that charts reject, so that
// a push already reports the errors.
func Check(cfg *config.Cluster) config.Findings {
	findings := catalogue.Check(cfg)
	if len(findings.Errors()) > 0 {
		return findings // their values can't be rendered
	}
	c, _, err := catalogue.Load(context.Background(), cfg, catalogue.Options{})
	if err != nil {
		return findings // the service would be one of them
	}
	for _, s := range c.Services() {
		if !s.Enabled || s.Upstream != nil {
			continue
		}
		_, err := release.RenderOffline(request(s), strings.TrimPrefix(cmp.Or(cfg.Kubernetes.Kubernetes.Version, version.Get().Kubernetes), "v"))
		if err == nil {
			continue
		}
		findings = append(findings, cfg.Finding(config.ServicesFile, strictyaml.Error, strictyaml.Path{s.Name}, "services/refused",
			refusal(err), "correct the section; see: paictl service values "+s.Name))
	}
	findings.Sort()
	return findings
}

// refusal returns a chart's error message without the position in the template.
func refusal(err error) string {
	text := err.Error()
	const chart = "its chart says: "
	if at := strings.Index(text, chart); at >= 0 {
		return text[at+len(chart):]
	}
	return text
}
