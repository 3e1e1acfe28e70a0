package catalogue

import (
	"math"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/secret"
)

// These are keys of the values that paictl sets in embedded charts.
const (
	keyGlobal              = "global"
	keyAffinity            = "affinity"
	keyTolerations         = "tolerations"
	keyCredentialsSecret   = "credentialsSecret"
	keyCredentialsRevision = "credentialsChecksum"
	// keyCredentialsKeys is the key that lists the existing secrets. Some charts behave differently if a certain secret exists.
	keyCredentialsKeys = "credentialsKeys"
)

// globalValues returns values about the cluster. Every embedded chart receives these values.
func globalValues(cfg *config.Cluster) map[string]any {
	s, k := cfg.Services.Cluster, cfg.Kubernetes.Kubernetes
	pull := []any{}
	if s.DockerRegistry.Username != "" {
		pull = append(pull, s.DockerRegistry.SecretName)
	}
	return map[string]any{
		"clusterId":        s.Common.ClusterID,
		"imageRegistry":    s.DockerRegistry.Mirror,
		"ownRegistry":      s.DockerRegistry.Domain + "/" + s.DockerRegistry.Namespace,
		"ownTag":           s.DockerRegistry.Tag,
		"imagePullSecrets": pull,
		"dataPath":         s.Common.DataPath,
		"dnsDomain":        k.DNSDomain,
		"podCidr":          k.PodCIDR,
		"accessSecret":     access.Secret,
		"tokenSecret":      api.TokenSecret,
	}
}

// merge returns a copy of base with the values of over. Nested maps are merged. Other values in over replace the values in base. merge doesn't change
// its arguments.
func merge(base, over map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(over))
	for k, v := range base {
		out[k] = clone(v)
	}
	for k, v := range over {
		below, isMap := out[k].(map[string]any)
		if m, ok := v.(map[string]any); ok && isMap {
			out[k] = merge(below, m)
			continue
		}
		out[k] = clone(v)
	}
	return out
}

// mergeComputed merges the values of a section over computed values. An empty list in the section doesn't override a computed list, because empty
// lists are the charts' default.
func mergeComputed(computed, section map[string]any) map[string]any {
	out := merge(computed, section)
	for key, v := range computed {
		switch v := v.(type) {
		case []any:
			if list, ok := out[key].([]any); ok && len(list) == 0 {
				out[key] = clone(v)
			}
		case map[string]any:
			if m, ok := section[key].(map[string]any); ok {
				out[key] = mergeComputed(v, m)
			}
		}
	}
	return out
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return merge(v, nil)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	}
	return v
}

// plain converts a value of a section to the types that Helm and the schema use. Integers become int64, so that templates print integers unchanged.
// If dropNull is set, plain removes keys with null values, so that the defaults apply.
func plain(v any, dropNull bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if e != nil || !dropNull {
				out[k] = plain(e, dropNull)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e, dropNull)
		}
		return out
	case int:
		return int64(v)
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
		return float64(v)
	}
	return v
}

// masked returns a copy of values in which all values except maps are masked.
func masked(values map[string]any) map[string]any {
	out := make(map[string]any, len(values))
	for k, v := range values {
		if m, ok := v.(map[string]any); ok {
			out[k] = masked(m)
			continue
		}
		out[k] = secret.Mask
	}
	return out
}
