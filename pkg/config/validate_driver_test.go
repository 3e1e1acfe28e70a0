package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersionsOfTheDriverAreBranchesOrReleases(t *testing.T) {
	for version, valid := range map[string]bool{
		"535": true, "535.261.03": true, "580.65": true, "550.90.07": true,
		"": false, "5": false, "535.": false, "535.261.03-1": false, "535-server": false, "R535": false, "v535": false, "535.261.03.1": false,
	} {
		assert.Equal(t, valid, driverVersion.MatchString(version), version)
	}
}

func TestADriverIsKeptWhereNothingIsSaid(t *testing.T) {
	assert.Equal(t, GPUDriver{Policy: "keep", Module: "auto", Source: "distribution"}, GPUDriver{}.WithDefaults())
	own := GPUDriver{Policy: "install", Version: "535", Module: "open", Source: "nvidia"}
	assert.Equal(t, own, own.WithDefaults())
}
