package catalogue

import (
	"maps"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// former lists settings that no longer have an effect, by service, with the reason. The settings remain valid. Otherwise users would have to edit the
// configuration before an upgrade, and paictl would reject older revisions of the configuration.
var former = map[string][]formerKey{
	SchedulerService: {
		{strictyaml.Path{"kubeScheduler", "image"}, "kube-scheduler is part of the scheduler's own image"},
		{strictyaml.Path{"kubeScheduler", "resources"}, "kube-scheduler is part of the scheduler: its resources hold for both"},
	},
	ServerService: formerServer(),
}

// formerServer returns OpenPAI's settings of rest-server. A configuration that was migrated from OpenPAI still contains these settings. Some settings
// are passwords.
func formerServer() []formerKey {
	out := []formerKey{
		{strictyaml.Path{"default-pai-admin-username"}, noDefaultPassword}, {strictyaml.Path{"default-pai-admin-password"}, noDefaultPassword},
		{strictyaml.Path{"jwt-secret"}, "the server makes its own keys"},
	}
	for _, key := range []string{
		"server-port", "jwt-expire-time", "rate-limit-api-per-min", "rate-limit-list-job-per-min", "rate-limit-submit-job-per-hour", "schedule-port-start",
		"schedule-port-end", "debugging-reservation-seconds", "enable-priority-class", "sql-max-connection", "hived-computing-device-envs",
		"github-owner", "github-repository", "github-path", "log-server",
	} {
		out = append(out, formerKey{strictyaml.Path{key}, "it was the original's"})
	}
	return out
}

const noDefaultPassword = "there is no default password: paictl service start prints a link for the first administrator"

type formerKey struct {
	path strictyaml.Path
	why  string
}

// withoutFormer returns a section's values without the settings that no longer have an effect. withoutFormer adds a warning about each removed
// setting.
func (b *builder) withoutFormer(service string, values map[string]any) map[string]any {
	for _, f := range former[service] {
		left, ok := without(values, f.path)
		if ok {
			values = left
			b.warn(at(service, f.path...), "services/former", "this setting no longer has an effect: "+f.why, "remove it")
		}
	}
	return values
}

// without returns a copy of values without the value at a path. The second result reports whether the value existed.
func without(values map[string]any, path strictyaml.Path) (map[string]any, bool) {
	key, _ := path[0].(string)
	value, ok := values[key]
	if !ok {
		return values, false
	}
	out := maps.Clone(values)
	if len(path) == 1 {
		delete(out, key)
		return out, true
	}
	inner, ok := value.(map[string]any)
	if !ok {
		return values, false
	}
	if out[key], ok = without(inner, path[1:]); !ok {
		return values, false
	}
	return out, true
}
