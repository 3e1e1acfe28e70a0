package api_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
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

func TestAJobThatGetsMoreGPUsThanItAsksForTakesThem(t *testing.T) {
	for _, one := range []struct {
		asks, takes string
		taken       int
	}{{"4", "", 4}, {"4", "5", 5}, {"4", "3", 4}, {"4", "-1", 4}, {"4", "99999999999", 4}, {"many", "5", api.UnknownGPUs}, {"", "", 0}} {
		f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationGPUs: one.asks, v1.AnnotationGPUsTaken: one.takes}}}
		row := api.Summary(f)
		assert.Equal(t, one.taken, row.Taken(), one)
	}
}
