package services

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

func TestSecretsOfAManifestAreMaskedAndTheRestIsKept(t *testing.T) {
	got, err := MaskManifest(`---
# Source: a/templates/secret.yaml
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData:
  password: hunter22
data:
  key: aHVudGVyMjI=
---
# Source: a/templates/cm.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: c # a comment
data: {a: "---"}
---

`)
	require.NoError(t, err)
	assert.Equal(t, `---
# Source: a/templates/secret.yaml
apiVersion: v1
data:
  key: '********'
kind: Secret
metadata:
  name: s
stringData:
  password: '********'
---
# Source: a/templates/cm.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: c # a comment
data: {a: "---"}
`, got)
}

func TestWorkloadsAreFoundWithTheirSelectors(t *testing.T) {
	all, err := workloads(`---
kind: Deployment
metadata: {name: a}
spec: {selector: {matchLabels: {app: a}}}
---
kind: Service
metadata: {name: b}
spec: {selector: {app: b}}
---
kind: DaemonSet
metadata: {name: c, namespace: other}
spec: {selector: {matchExpressions: [{key: app, operator: In, values: [c]}]}}
---
kind: StatefulSet
metadata: {name: d}
`, "ns")
	require.NoError(t, err)
	require.Len(t, all, 3)
	assert.Equal(t, workload{kind: "Deployment", namespace: "ns", name: "a", selector: all[0].selector}, all[0])
	assert.True(t, all[0].selector.Matches(labels.Set{"app": "a"}))
	assert.Equal(t, "other", all[1].namespace)
	assert.True(t, all[1].selector.Matches(labels.Set{"app": "c"}))
	assert.False(t, all[2].selector.Matches(labels.Set{"app": "d"}), "no selector selects nothing")
	_, err = workloads("a: [", "ns")
	assert.Error(t, err)
}
