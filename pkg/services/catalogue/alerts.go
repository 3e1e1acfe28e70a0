package catalogue

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/httpserver/access"
)

// Services that handle alerts. The services' sections have the same names.
const (
	AlertHandlerService = "alert-handler"
	AlertManagerService = "alert-manager"
)

// configureAlerts configures Alertmanager to send alerts to the alert handler, and checks the alert handler's settings.
func (b *builder) configureAlerts() {
	if !b.ownRuns(AlertHandlerService) {
		return
	}
	s := b.services[AlertHandlerService]
	networks := []any{}
	for _, text := range []string{b.cfg.Kubernetes.Kubernetes.PodCIDR, b.cfg.Kubernetes.Kubernetes.ServiceClusterIPRange} {
		if text != "" {
			networks = append(networks, text)
		}
	}
	s.Values = mergeComputed(map[string]any{"tokenSecret": access.AlertsSecret, "notifications": map[string]any{"clusterNetworks": networks}}, s.Values)
	values := merge(s.Chart.Values, s.Values)
	b.checkPolicies(values, b.checkNotifications(values))
	if !b.ownRuns(AlertManagerService) {
		return
	}
	port := any(9095)
	if service, ok := values["service"].(map[string]any); ok {
		port = service["port"]
	}
	m := b.services[AlertManagerService]
	m.Values = mergeComputed(map[string]any{"alertHandler": map[string]any{
		"url": fmt.Sprintf("http://%s:%v/alerts", AlertHandlerService, port), "tokenSecret": s.Values["tokenSecret"],
	}}, m.Values)
}

// checkPolicies reports mistakes in the policies that the schema can't find. notices reports whether notices can be sent.
func (b *builder) checkPolicies(values map[string]any, notices bool) {
	part := map[string]any{}
	for _, key := range []string{"limits", "drainTimeout", "restartMachines", "keep", "policies"} {
		part[key] = values[key]
	}
	data, err := json.Marshal(part)
	if err != nil {
		return // the schema reports it
	}
	c := &policy.Config{}
	if json.Unmarshal(data, c) != nil {
		return
	}
	for _, p := range c.Check() {
		b.fail(pathOf(AlertHandlerService, p.Path), "services/alert-policy", p.Message, p.Remedy)
	}
	for i := range c.Policies {
		if p := &c.Policies[i]; !p.DryRun && p.StopsJobs() && !notices {
			b.fail(at(AlertHandlerService, "policies", i), "services/alert-policy", fmt.Sprintf("the policy %q stops jobs, and no notice can reach their owners before", p.Name),
				"set notifications.smtp or a webhook, or dryRun: true in the policy")
		}
	}
	if allowed, _ := values[keyRestartMachines].(bool); allowed && !b.agentsRestart() {
		b.fail(at(AlertHandlerService, keyRestartMachines), "services/alert-policy", "the agents, which restart their machines, don't allow it", "set agent.restartMachines to true as well, or this one to false")
	}
}

// keyRestartMachines is the setting that allows restarts of machines. The sections of the alert handler and of the agent contain this setting.
const keyRestartMachines = "restartMachines"

func (b *builder) agentsRestart() bool {
	s := b.services[AgentService]
	if s == nil {
		return false
	}
	allowed, _ := merge(s.Chart.Values, s.Values)[keyRestartMachines].(bool)
	return allowed
}

// checkNotifications reports mistakes in the notifications that the schema can't find. It runs before the secrets are removed from the values. It
// returns whether notices can be sent, or true if the schema reports mistakes.
func (b *builder) checkNotifications(values map[string]any) (notices bool) {
	data, err := json.Marshal(values["notifications"])
	if err != nil {
		return true
	}
	c := &notify.Config{}
	if json.Unmarshal(data, c) != nil {
		return true
	}
	for _, p := range c.Check() {
		b.fail(pathOf(AlertHandlerService, p.Path), "services/notifications", p.Message, p.Remedy)
	}
	return c.Enabled()
}

var pathStep = regexp.MustCompile(`([^.\[\]]+)|\[([0-9]+)\]`)

// pathOf parses a path such as policies[2].steps[0].do, and returns the path in the service's section.
func pathOf(service, text string) strictyaml.Path {
	out := at(service)
	for _, m := range pathStep.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[2]); err == nil {
			out = append(out, n)
		} else {
			out = append(out, m[1])
		}
	}
	return out
}
