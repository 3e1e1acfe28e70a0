package ready

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// A run waits for objects of these kinds. Other objects, such as a Service or a ConfigMap, work as soon as they exist.
const (
	kindDeployment  = "Deployment"
	kindDaemonSet   = "DaemonSet"
	kindStatefulSet = "StatefulSet"
	kindReplicaSet  = "ReplicaSet"
	kindJob         = "Job"
	kindClaim       = "PersistentVolumeClaim"
	kindVolume      = "PersistentVolume"
	kindPod         = "Pod"
)

// target is an object in the manifest that a run waits for.
type target struct {
	kind, namespace, name string
	// passing means that the object deletes itself after finishing, such as a Job with a TTL.
	passing bool
}

// Target identifies an object that must be ready before its release is ready.
type Target struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // "" for kinds without a namespace
	Name      string `json:"name"`
	// Passing means that the object deletes itself after finishing.
	Passing bool `json:"passing,omitempty"`
}

// Valid reports whether the target can be checked. The kind must be known, and the name must be set. Namespaced kinds require a namespace.
func (t Target) Valid() bool {
	return waitedFor[t.Kind] != "" && t.Name != "" && (t.Namespace == "") == (t.Kind == kindVolume)
}

// Targets returns the objects in a manifest that must be ready. Objects without a namespace receive the release's namespace.
func Targets(namespace, manifest string) ([]Target, error) {
	found, err := parseTargets(namespace, manifest)
	if err != nil {
		return nil, err
	}
	out := make([]Target, 0, len(found))
	for _, t := range found {
		out = append(out, Target{Kind: t.kind, Namespace: t.namespace, Name: t.name, Passing: t.passing})
	}
	return out, nil
}

// String returns the target for messages, such as "deployment/grafana".
func (t target) String() string { return object(t.kind, t.name) }

func object(kind, name string) string { return strings.ToLower(kind) + "/" + name }

var waitedFor = map[string]string{
	kindDeployment: "apps/", kindDaemonSet: "apps/", kindStatefulSet: "apps/", kindJob: "batch/", kindClaim: "v1", kindVolume: "v1", kindPod: "v1",
}

// parseTargets returns the objects in a manifest that a run waits for. Objects without a namespace receive the release's namespace. parseTargets
// omits hooks, because Helm waits for hooks.
func parseTargets(namespace, manifest string) ([]target, error) {
	var out []target
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		found, err := targetsOf(namespace, doc)
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		out = append(out, found...)
	}
}

// Kinds returns the kinds of a document's top-level objects. Kinds only reads lines that begin with "kind:", to save time: most of the text of all
// manifests is data in ConfigMaps.
func Kinds(doc string) []string {
	var out []string
	for line := range strings.Lines(doc) {
		if kind, found := strings.CutPrefix(line, "kind:"); found {
			kind = strings.Trim(strings.TrimSuffix(kind, "\n"), " ")
			if kind != "" && strings.Trim(kind, letters) == "" {
				out = append(out, kind)
			}
		}
	}
	return out
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// passed reports whether a document contains only one kind, and the kind is one that no run waits for.
func passed(doc []byte) bool {
	kinds := Kinds(string(doc))
	return len(kinds) == 1 && waitedFor[kinds[0]] == "" && !strings.HasSuffix(kinds[0], "List")
}

func targetsOf(namespace string, doc []byte) ([]target, error) {
	if passed(doc) {
		return nil, nil
	}
	type part struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			TTL *int32 `json:"ttlSecondsAfterFinished"`
		} `json:"spec"`
	}
	var one struct {
		part  `json:",inline"`
		Items []part `json:"items"`
	}
	if err := yaml.Unmarshal(doc, &one); err != nil {
		// Other kinds may use these fields for other purposes.
		var head metav1.TypeMeta
		if yaml.Unmarshal(doc, &head) == nil && waitedFor[head.Kind] == "" && head.Kind != "List" {
			return nil, nil
		}
		return nil, err
	}
	var out []target
	for _, p := range append(one.Items, one.part) {
		api, ok := waitedFor[p.Kind]
		if !ok || !strings.HasPrefix(p.APIVersion, api) || p.Annotations["helm.sh/hook"] != "" {
			continue
		}
		t := target{kind: p.Kind, namespace: p.Namespace, name: p.Name, passing: p.Kind == kindJob && p.Spec.TTL != nil}
		switch {
		case p.Kind == kindVolume:
			t.namespace = ""
		case t.namespace == "":
			t.namespace = namespace
		}
		out = append(out, t)
	}
	return out, nil
}
