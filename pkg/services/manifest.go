package services

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/services/ready"
)

// These are the kinds of workloads that create the pods of services.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindDaemonSet   = "DaemonSet"
	kindJob         = "Job"
)

// object is a parsed document of a manifest, together with its text.
type object struct {
	unstructured.Unstructured
	text string
}

// splitManifest returns the documents of a manifest. splitManifest leaves out empty documents.
func splitManifest(manifest string) []string {
	var out []string
	var doc strings.Builder
	flush := func() {
		if strings.TrimSpace(doc.String()) != "" {
			out = append(out, doc.String())
		}
		doc.Reset()
	}
	for line := range strings.Lines(manifest) {
		if strings.TrimRight(line, " \r\n") == "---" {
			flush()
			continue
		}
		doc.WriteString(line)
	}
	flush()
	return out
}

func objects(manifest string) ([]object, error) {
	var out []object
	for _, text := range splitManifest(manifest) {
		o := object{text: text}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			return nil, fmt.Errorf("read a manifest: %w", err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
	return out, nil
}

// configMaps returns the metadata of a manifest's ConfigMaps. configMaps doesn't parse the ConfigMaps' data, because dashboards and rules make up
// most of the text of all manifests.
func configMaps(manifest string) ([]metav1.ObjectMeta, error) {
	var out []metav1.ObjectMeta
	for _, text := range splitManifest(manifest) {
		if !slices.Contains(ready.Kinds(text), "ConfigMap") {
			continue
		}
		var o metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(beforeData(text)), &o); err != nil || o.Name == "" { // the data come before the metadata
			o = metav1.PartialObjectMetadata{}
			if err := yaml.Unmarshal([]byte(text), &o); err != nil {
				return nil, fmt.Errorf("read a manifest: %w", err)
			}
		}
		out = append(out, o.ObjectMeta)
	}
	return out, nil
}

// beforeData returns the lines of a ConfigMap before its data.
func beforeData(text string) string {
	end := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "data:") || strings.HasPrefix(line, "binaryData:") {
			break
		}
		end += len(line)
	}
	return text[:end]
}

// workload is an object that creates pods, such as a Deployment, with the selector of the pods.
type workload struct {
	kind, namespace, name string
	selector              labels.Selector
}

// workloads returns the Deployments, StatefulSets and DaemonSets of a manifest. Objects without a namespace are in the given namespace.
func workloads(manifest, namespace string) ([]workload, error) {
	all, err := objects(manifest)
	if err != nil {
		return nil, err
	}
	var out []workload
	for _, o := range all {
		switch o.GetKind() {
		case kindDeployment, kindStatefulSet, kindDaemonSet:
		default:
			continue
		}
		w := workload{kind: o.GetKind(), namespace: o.GetNamespace(), name: o.GetName()}
		if w.namespace == "" {
			w.namespace = namespace
		}
		if w.selector, err = selectorOf(o); err != nil {
			return nil, fmt.Errorf("the selector of %s %s: %w", w.kind, w.name, err)
		}
		out = append(out, w)
	}
	return out, nil
}

// jobs returns the Jobs of a manifest. jobs selects pods by the name of the Job, because the manifest doesn't contain the selector that the API
// server creates.
func jobs(manifest, namespace string) ([]workload, error) {
	all, err := objects(manifest)
	if err != nil {
		return nil, err
	}
	var out []workload
	for _, o := range all {
		if o.GetKind() != kindJob {
			continue
		}
		w := workload{kind: kindJob, namespace: o.GetNamespace(), name: o.GetName(), selector: labels.SelectorFromSet(labels.Set{batchv1.JobNameLabel: o.GetName()})}
		if w.namespace == "" {
			w.namespace = namespace
		}
		out = append(out, w)
	}
	return out, nil
}

func selectorOf(o object) (labels.Selector, error) {
	raw, found, err := unstructured.NestedMap(o.Object, "spec", "selector")
	if err != nil || !found {
		return labels.Nothing(), err
	}
	b, err := yaml.Marshal(raw)
	if err != nil {
		return nil, err
	}
	var s metav1.LabelSelector
	if err := yaml.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&s)
}

// MaskManifest masks the data of Secrets in a manifest. MaskManifest doesn't change other documents or their comments.
func MaskManifest(manifest string) (string, error) {
	all, err := objects(manifest)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, o := range all {
		text := o.text
		if o.GetKind() == "Secret" {
			maskValues(o.Object, "data")
			maskValues(o.Object, "stringData")
			masked, err := yaml.Marshal(o.Object)
			if err != nil {
				return "", fmt.Errorf("mask the Secret %s: %w", o.GetName(), err)
			}
			text = sourceLine(o.text) + string(masked)
		}
		b.WriteString("---\n" + strings.TrimRight(text, "\n") + "\n")
	}
	return b.String(), nil
}

func maskValues(o map[string]any, field string) {
	if values, ok := o[field].(map[string]any); ok {
		for k := range values {
			values[k] = secret.Mask
		}
	}
}

// sourceLine returns Helm's comment with the path of the template, or "".
func sourceLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
	if strings.HasPrefix(first, "# Source: ") {
		return first + "\n"
	}
	return ""
}
