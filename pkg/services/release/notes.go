package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/version"
)

// These are labels of a revision's record. Helm keeps these labels, and restores them in a rollback to the revision.
const (
	// labelBy holds the version of paictl that created the revision, in the form of version.Tag.
	labelBy = "paictl.openpai.org/version"
	// labelFrom holds the number of the revision before an upgrade. The label is removed when a run has observed that the upgraded revision is ready.
	labelFrom = "paictl.openpai.org/upgraded-from"
	// dropped is a label value. Helm removes a label of the previous revision if the new value is dropped.
	dropped = "null"
)

// notes returns the labels of the revision that the job will create.
func (j *job) notes() map[string]string {
	out := map[string]string{}
	if by := thisPaictl(); by != "" {
		out[labelBy] = by
	}
	if j.past.base == nil { // an install accepts labels unchanged
		return out
	}
	if out[labelBy] == "" {
		out[labelBy] = dropped
	}
	out[labelFrom] = dropped
	if j.request.Upgrade {
		out[labelFrom] = strconv.Itoa(j.past.previous())
	}
	return out
}

// thisPaictl returns the version of this paictl, or "" if the version isn't a valid label value.
func thisPaictl() string {
	if tag := version.Tag(); len(validation.IsValidLabelValue(tag)) == 0 {
		return tag
	}
	return ""
}

// ownLabels returns the labels of a record's Secret without the labels that Helm itself sets.
func ownLabels(all map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool { return slices.Contains(driver.GetSystemLabels(), key) })
	return out
}

// Settle implements Manager. Settle only changes labels of the record.
func (h *helm) Settle(ctx context.Context, namespace, name string) error {
	return h.explain("note the state of", name, h.settle(ctx, namespace, name))
}

func (h *helm) settle(ctx context.Context, namespace, name string) error {
	client, err := kubernetes.NewForConfig(kube.Protobuf(h.config))
	if err != nil {
		return err
	}
	all, err := readHistory(ctx, client, namespace, name)
	if err != nil || len(all) == 0 {
		return err
	}
	last := all[0]
	_, unproven := last.labels[labelFrom]
	if by := thisPaictl(); !unproven && (by == "" || by == last.labels[labelBy]) {
		return nil
	}
	labels := map[string]any{labelFrom: nil}
	if by := thisPaictl(); by != "" {
		labels[labelBy] = by
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Secrets(namespace).Patch(ctx, last.secret, types.MergePatchType, raw, metav1.PatchOptions{})
	return err
}

// Outdated implements Manager. Outdated sends one request for each namespace.
func (h *helm) Outdated(ctx context.Context, requests []Request) ([]Release, error) {
	client, err := kubernetes.NewForConfig(kube.Protobuf(h.config))
	if err != nil {
		return nil, err
	}
	spaces := map[string]map[string]history{}
	var out []Release
	for _, r := range requests {
		if spaces[r.Namespace] == nil {
			records, err := readRecords(ctx, client, r.Namespace, "owner=helm") // the earlier records show which revision runs after a rollback that failed
			if err != nil {
				return nil, h.cluster.Explain(err)
			}
			spaces[r.Namespace] = byRelease(records)
		}
		old, err := outdated(spaces[r.Namespace][r.Name], r)
		if err != nil {
			return nil, h.explain("compare", r.Name, err)
		}
		if old != nil {
			out = append(out, *old)
		}
	}
	return out, nil
}

func byRelease(records []record) map[string]history {
	out := map[string]history{}
	for _, r := range records {
		out[r.name] = append(out[r.name], r)
	}
	for _, h := range out {
		slices.SortFunc(h, func(a, b record) int { return b.revision - a.revision })
	}
	return out
}

// outdated returns the release if its chart differs from the requested chart. Otherwise outdated returns nil.
func outdated(h history, r Request) (*Release, error) {
	p, err := h.judge()
	if err != nil || p.base == nil || p.leaving {
		return nil, err
	}
	chart, err := prepareChart(r.Chart, r.Values)
	if err != nil {
		return nil, fmt.Errorf("prepare the chart: %w", err)
	}
	if sameChart(p.base.Chart, chart) {
		return nil, nil
	}
	out := &Release{Name: r.Name, Namespace: r.Namespace, Revision: p.base.Version, Status: p.base.Info.Status.String(), By: p.base.Labels[labelBy]}
	if c := p.base.Chart; c != nil && c.Metadata != nil {
		out.Chart, out.Version = c.Metadata.Name, c.Metadata.Version
	}
	return out, nil
}
