package catalogue

import (
	"math"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/secret"
)

// Keys of values that paictl sets in embedded charts.
const (
	keyGlobal              = "global"
	keyAffinity            = "affinity"
	keyTolerations         = "tolerations"
	keyCredentialsSecret   = "credentialsSecret"
	keyCredentialsRevision = "credentialsChecksum"
	// keyCredentialsKeys is the key with the list of secrets that are set. It is for charts that behave differently if a certain secret is set.
	keyCredentialsKeys = "credentialsKeys"
)

// globalValues returns the values about the cluster that every embedded chart receives.
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

// merge returns a copy of base that is overridden by over. Maps are merged, and other values are replaced. Neither argument is changed.
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

// mergeComputed returns computed values that are overridden by a section. An empty list in the section doesn't override a computed list, because
// empty lists are the charts' default.
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

// plain converts a value of a section to the types that Helm and the schema use. Whole numbers become int64, so that templates print them unchanged.
// If dropNull is set, plain removes keys without a value, so that their defaults apply.
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
