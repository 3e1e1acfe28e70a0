package listing

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job/api"
)

func TestAFailureIsInWords(t *testing.T) {
	code := int32(137)
	failed := Brief{Job: api.Job{State: string(Failed), Phrase: "ContainerMemoryOOMKilled", Code: &code}}
	assert.Equal(t, "container memory OOM killed, code 137", failed.Failure())
}
