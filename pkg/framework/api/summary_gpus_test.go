package api_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/framework/api"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

func TestANumberOfGPUsThatIsNoneIsUnknown(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "0": 0, "16": 16, "-1": api.UnknownGPUs, "-999999999999999999999": api.UnknownGPUs, "999999999999999999999": api.UnknownGPUs,
		"9223372036854775807": api.UnknownGPUs, "many": api.UnknownGPUs, "1.5": api.UnknownGPUs,
	} {
		f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationGPUs: text}}}
		assert.Equal(t, want, api.Summary(f).GPUs, text)
	}
}
