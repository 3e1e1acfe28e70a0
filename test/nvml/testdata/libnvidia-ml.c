// A stand-in for NVIDIA's management library on machines without a GPU. It says what a machine with two
// A100-SXM4-40GB says, so that programs that load the library (pai-nvml, nvidia-ctk) run unchanged. What it
// leaves out answers "not supported", as the library does for what a card can't do.
//
// GPU 0 is /dev/nvidia1 and GPU 1 is /dev/nvidia0: numbers of GPUs follow their PCI addresses, those of files the
// order in which the driver found them, and programs that take one for the other are wrong on real machines.
#define _GNU_SOURCE
#include <nvml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DRIVER
#define DRIVER "535.261.03"
#endif

enum { gpus = 2 };
struct nvmlDevice_st { unsigned index, minor, bus; const char *uuid; };
static struct nvmlDevice_st of[gpus] = {
	{0, 1, 0x07, "GPU-11111111-2222-3333-4444-000000000000"},
	{1, 0, 0x0f, "GPU-11111111-2222-3333-4444-000000000001"},
};
static int set;
// told says what else this machine is: words in the environment variable NVML_STANDIN.
//   hopper    two H100, which count how busy their parts are
//   fabric-off, fabric-busy, fabric-failed, fabric-unhealthy, fabric-misconfigured, fabric-on
//             they are in an NVLink fabric, which is in that state
//   leaks     16 GiB of memory are in use
//   process   by one process
//   screen    a screen is connected
static int told(const char *word) { const char *all = getenv("NVML_STANDIN"); return all && strstr(all, word) != NULL; }
#include "mig.h"


static nvmlReturn_t text(char *to, unsigned size, const char *from) {
	if (strlen(from) + 1 > size) return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(to, from);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) { return NVML_SUCCESS; }
nvmlReturn_t nvmlInitWithFlags(unsigned flags) { return NVML_SUCCESS; }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t r) { return r == NVML_SUCCESS ? "Success" : r == NVML_ERROR_NOT_SUPPORTED ? "Not Supported" : r == NVML_ERROR_IN_USE ? "In use by another client" : r == NVML_ERROR_INSUFFICIENT_RESOURCES ? "Insufficient Resources" : "Unknown Error"; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned size) { return text(to, size, DRIVER); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *to) { *to = 12020; return NVML_SUCCESS; }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *to) { return nvmlSystemGetCudaDriverVersion(to); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *to) { *to = gpus; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *to) {
	if (i >= gpus) return NVML_ERROR_INVALID_ARGUMENT;
	to->handle = &of[i];
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *to) {
	for (unsigned i = 0; i < gpus; i++)
		if (!strcmp(uuid, of[i].uuid)) return nvmlDeviceGetHandleByIndex_v2(i, to);
	return partByUUID(uuid, to);
}
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t d, unsigned *to) { *to = d.handle->index; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t d, unsigned *to) { *to = d.handle->minor; return NVML_SUCCESS; }
// nvml.h of status: "Error status, if any. Must be checked only if state returns "complete"."
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, nvmlGpuFabricInfo_t *to) {
	memset(to, 0, sizeof *to);
	to->state = told("fabric-off") ? NVML_GPU_FABRIC_STATE_NOT_STARTED : told("fabric-busy") ? NVML_GPU_FABRIC_STATE_IN_PROGRESS :
		told("fabric-") ? NVML_GPU_FABRIC_STATE_COMPLETED : NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
	if (told("fabric-failed")) to->status = NVML_ERROR_INSUFFICIENT_RESOURCES;
	if (told("fabric-off")) to->status = NVML_ERROR_UNKNOWN; // not to be looked at
	return NVML_SUCCESS;
}
// Only the second version of the structure is known, as by drivers 545 to 575.
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, nvmlGpuFabricInfoV_t *to) {
	nvmlGpuFabricInfo_v2_t *v2 = (nvmlGpuFabricInfo_v2_t *)to;
	nvmlGpuFabricInfo_t v1;
	if (v2->version != nvmlGpuFabricInfo_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	nvmlDeviceGetGpuFabricInfo(d, &v1);
	v2->status = v1.status, v2->state = v1.state;
	v2->healthMask = NVML_GPU_FABRIC_HEALTH_MASK_DEGRADED_BW_FALSE << NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW |
		(told("fabric-unhealthy") ? NVML_GPU_FABRIC_HEALTH_MASK_ROUTE_UNHEALTHY_TRUE : NVML_GPU_FABRIC_HEALTH_MASK_ROUTE_UNHEALTHY_FALSE) << NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY |
		(told("fabric-misconfigured") ? NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_INSUFFICIENT_NVLINKS : NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE) << NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *to, unsigned size) {
	unsigned gpu, gi, ci;
	return text(to, size, isPart(d, &gpu, &gi, &ci) ? nameOf(gpu, gi, ci) : d.handle->uuid);
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *to, unsigned size) { return text(to, size, told("hopper") ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-40GB"); }
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t d, nvmlBrandType_t *to) { *to = NVML_BRAND_NVIDIA; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *to) {
	memset(to, 0, sizeof *to);
	to->bus = d.handle->bus, to->pciDeviceId = 0x20b010de, to->pciSubSystemId = 0x134f10de;
	snprintf(to->busId, sizeof to->busId, "00000000:%02X:00.0", d.handle->bus);
	snprintf(to->busIdLegacy, sizeof to->busIdLegacy, "0000:%02X:00.0", d.handle->bus);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *to) {
	unsigned gpu, gi, ci;
	to->total = 42949672960ULL, to->used = 1ULL << (told("leaks") ? 34 : 30);
	if (isPart(d, &gpu, &gi, &ci)) load(), to->total = (unsigned long long)profiles[cards[gpu].gi[gi].kind].memory << 20, to->used = 12ULL << 20;
	to->free = to->total - to->used;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t s, unsigned *to) { *to = 34; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *to) { *to = 51000; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t d, nvmlEnableState_t *to) { *to = told("screen") ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t d, nvmlEnableState_t *to) { return nvmlDeviceGetDisplayMode(d, to); }

// Of a card that counts, a value is the metric's number per sample that lies between two; FP16 isn't counted.
struct nvmlGpmSample_st { unsigned taken; };
nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *to) {
	if (to->version != NVML_GPM_SUPPORT_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	to->isSupportedDevice = told("hopper");
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *to) { to->handle = calloc(1, sizeof(struct nvmlGpmSample_st)); return NVML_SUCCESS; }
nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t s) { free(s.handle); return NVML_SUCCESS; }
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t d, nvmlGpmSample_t s) {
	static unsigned taken[gpus];
	if (!told("hopper")) return NVML_ERROR_NOT_SUPPORTED;
	s.handle->taken = ++taken[d.handle->index];
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *m) {
	if (m->version != NVML_GPM_METRICS_GET_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!m->sample1.handle || !m->sample2.handle || !m->sample1.handle->taken || m->sample2.handle->taken <= m->sample1.handle->taken) return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < m->numMetrics; i++) {
		m->metrics[i].nvmlReturn = m->metrics[i].metricId == NVML_GPM_METRIC_FP16_UTIL ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
		m->metrics[i].value = m->metrics[i].metricId * (double)(m->sample2.handle->taken - m->sample1.handle->taken);
	}
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *to) {
	load();
	to->gpu = to->memory = 0;
	return cards[d.handle->index].mode ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *to) { to->handle = (void *)&set; return NVML_SUCCESS; }
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t s) { return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, unsigned long long *to) { *to = nvmlEventTypeXidCriticalError; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t s) { return NVML_SUCCESS; }
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t s, nvmlEventData_t *to, unsigned ms) {
	usleep(ms * 1000);
	return NVML_ERROR_TIMEOUT;
}

// All else that version 535.261.03 has: nm -D libnvidia-ml.so.1. A program that calls a function that the library lacks ends, as it
// does with the real one. The header is left behind here: these have no arguments.
#define NO(name) __asm__(".globl " #name "\n.type " #name ", @function\n.set " #name ", not_supported\n");
__attribute__((used)) nvmlReturn_t not_supported(void) { return NVML_ERROR_NOT_SUPPORTED; }
NO(nvmlComputeInstanceGetInfo) NO(nvmlDeviceClearAccountingPids)
NO(nvmlDeviceClearCpuAffinity) NO(nvmlDeviceClearEccErrorCounts) NO(nvmlDeviceClearFieldValues)
NO(nvmlDeviceCreateGpuInstanceWithPlacement) NO(nvmlDeviceDiscoverGpus) NO(nvmlDeviceFreezeNvLinkUtilizationCounter)
NO(nvmlDeviceGetAPIRestriction) NO(nvmlDeviceGetAccountingBufferSize) NO(nvmlDeviceGetAccountingMode) NO(nvmlDeviceGetAccountingPids)
NO(nvmlDeviceGetAccountingStats) NO(nvmlDeviceGetActiveVgpus) NO(nvmlDeviceGetAdaptiveClockInfoStatus) NO(nvmlDeviceGetApplicationsClock)
NO(nvmlDeviceGetArchitecture) NO(nvmlDeviceGetAttributes) NO(nvmlDeviceGetAutoBoostedClocksEnabled)
NO(nvmlDeviceGetBAR1MemoryInfo) NO(nvmlDeviceGetBoardId) NO(nvmlDeviceGetBoardPartNumber) NO(nvmlDeviceGetBridgeChipInfo)
NO(nvmlDeviceGetBusType) NO(nvmlDeviceGetClkMonStatus) NO(nvmlDeviceGetClock) NO(nvmlDeviceGetClockInfo)
NO(nvmlDeviceGetComputeMode) NO(nvmlDeviceGetComputeRunningProcesses) NO(nvmlDeviceGetComputeRunningProcesses_v2)
NO(nvmlDeviceGetConfComputeGpuAttestationReport) NO(nvmlDeviceGetConfComputeGpuCertificate)
NO(nvmlDeviceGetConfComputeMemSizeInfo) NO(nvmlDeviceGetConfComputeProtectedMemoryUsage) NO(nvmlDeviceGetCount)
NO(nvmlDeviceGetCpuAffinity) NO(nvmlDeviceGetCpuAffinityWithinScope) NO(nvmlDeviceGetCreatableVgpus) NO(nvmlDeviceGetCudaComputeCapability)
NO(nvmlDeviceGetCurrPcieLinkGeneration) NO(nvmlDeviceGetCurrPcieLinkWidth) NO(nvmlDeviceGetCurrentClocksEventReasons)
NO(nvmlDeviceGetCurrentClocksThrottleReasons) NO(nvmlDeviceGetDecoderUtilization) NO(nvmlDeviceGetDefaultApplicationsClock)
NO(nvmlDeviceGetDefaultEccMode) NO(nvmlDeviceGetDetailedEccErrors)
NO(nvmlDeviceGetDriverModel) NO(nvmlDeviceGetDynamicPstatesInfo)
NO(nvmlDeviceGetEccMode) NO(nvmlDeviceGetEncoderCapacity) NO(nvmlDeviceGetEncoderSessions) NO(nvmlDeviceGetEncoderStats)
NO(nvmlDeviceGetEncoderUtilization) NO(nvmlDeviceGetEnforcedPowerLimit) NO(nvmlDeviceGetFBCSessions) NO(nvmlDeviceGetFBCStats)
NO(nvmlDeviceGetFanControlPolicy_v2) NO(nvmlDeviceGetFanSpeed) NO(nvmlDeviceGetFanSpeed_v2) NO(nvmlDeviceGetFieldValues)
NO(nvmlDeviceGetGpcClkMinMaxVfOffset) NO(nvmlDeviceGetGpcClkVfOffset)
NO(nvmlDeviceGetGpuInstancePossiblePlacements) NO(nvmlDeviceGetGpuInstancePossiblePlacements_v2)
NO(nvmlDeviceGetGpuInstanceProfileInfoV) NO(nvmlDeviceGetGpuInstanceRemainingCapacity)
NO(nvmlDeviceGetGpuMaxPcieLinkGeneration) NO(nvmlDeviceGetGpuOperationMode)
NO(nvmlDeviceGetGraphicsRunningProcesses) NO(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO(nvmlDeviceGetGridLicensableFeatures) NO(nvmlDeviceGetGridLicensableFeatures_v2) NO(nvmlDeviceGetGridLicensableFeatures_v3)
NO(nvmlDeviceGetGridLicensableFeatures_v4) NO(nvmlDeviceGetGspFirmwareMode) NO(nvmlDeviceGetGspFirmwareVersion)
NO(nvmlDeviceGetHandleByIndex) NO(nvmlDeviceGetHandleByPciBusId) NO(nvmlDeviceGetHandleByPciBusId_v2) NO(nvmlDeviceGetHandleBySerial)
NO(nvmlDeviceGetHostVgpuMode) NO(nvmlDeviceGetInforomConfigurationChecksum) NO(nvmlDeviceGetInforomImageVersion)
NO(nvmlDeviceGetInforomVersion) NO(nvmlDeviceGetIrqNum) NO(nvmlDeviceGetJpgUtilization) NO(nvmlDeviceGetLastBBXFlushTime)
NO(nvmlDeviceGetMPSComputeRunningProcesses) NO(nvmlDeviceGetMPSComputeRunningProcesses_v2) NO(nvmlDeviceGetMPSComputeRunningProcesses_v3)
NO(nvmlDeviceGetMaxClockInfo) NO(nvmlDeviceGetMaxCustomerBoostClock)
NO(nvmlDeviceGetMaxPcieLinkGeneration) NO(nvmlDeviceGetMaxPcieLinkWidth) NO(nvmlDeviceGetMemClkMinMaxVfOffset)
NO(nvmlDeviceGetMemClkVfOffset) NO(nvmlDeviceGetMemoryAffinity) NO(nvmlDeviceGetMemoryBusWidth) NO(nvmlDeviceGetMemoryErrorCounter)
NO(nvmlDeviceGetMemoryInfo_v2) NO(nvmlDeviceGetMinMaxClockOfPState) NO(nvmlDeviceGetMinMaxFanSpeed)
NO(nvmlDeviceGetModuleId) NO(nvmlDeviceGetMultiGpuBoard) NO(nvmlDeviceGetNumFans) NO(nvmlDeviceGetNumGpuCores)
NO(nvmlDeviceGetNvLinkCapability) NO(nvmlDeviceGetNvLinkErrorCounter) NO(nvmlDeviceGetNvLinkRemoteDeviceType)
NO(nvmlDeviceGetNvLinkRemotePciInfo) NO(nvmlDeviceGetNvLinkRemotePciInfo_v2) NO(nvmlDeviceGetNvLinkState)
NO(nvmlDeviceGetNvLinkUtilizationControl) NO(nvmlDeviceGetNvLinkUtilizationCounter) NO(nvmlDeviceGetNvLinkVersion)
NO(nvmlDeviceGetOfaUtilization) NO(nvmlDeviceGetP2PStatus) NO(nvmlDeviceGetPciInfo) NO(nvmlDeviceGetPciInfo_v2)
NO(nvmlDeviceGetPcieLinkMaxSpeed) NO(nvmlDeviceGetPcieReplayCounter) NO(nvmlDeviceGetPcieSpeed) NO(nvmlDeviceGetPcieThroughput)
NO(nvmlDeviceGetPerformanceState) NO(nvmlDeviceGetPersistenceMode) NO(nvmlDeviceGetPgpuMetadataString)
NO(nvmlDeviceGetPowerManagementDefaultLimit) NO(nvmlDeviceGetPowerManagementLimit) NO(nvmlDeviceGetPowerManagementLimitConstraints)
NO(nvmlDeviceGetPowerManagementMode) NO(nvmlDeviceGetPowerSource) NO(nvmlDeviceGetPowerState) NO(nvmlDeviceGetProcessUtilization)
NO(nvmlDeviceGetRemappedRows) NO(nvmlDeviceGetRetiredPages) NO(nvmlDeviceGetRetiredPagesPendingStatus) NO(nvmlDeviceGetRetiredPages_v2)
NO(nvmlDeviceGetRowRemapperHistogram) NO(nvmlDeviceGetRunningProcessDetailList) NO(nvmlDeviceGetSamples) NO(nvmlDeviceGetSerial)
NO(nvmlDeviceGetSramEccErrorStatus) NO(nvmlDeviceGetSupportedClocksEventReasons) NO(nvmlDeviceGetSupportedClocksThrottleReasons)
NO(nvmlDeviceGetSupportedGraphicsClocks) NO(nvmlDeviceGetSupportedMemoryClocks) NO(nvmlDeviceGetSupportedPerformanceStates)
NO(nvmlDeviceGetSupportedVgpus) NO(nvmlDeviceGetTargetFanSpeed) NO(nvmlDeviceGetTemperatureThreshold) NO(nvmlDeviceGetThermalSettings)
NO(nvmlDeviceGetTopologyCommonAncestor) NO(nvmlDeviceGetTopologyNearestGpus) NO(nvmlDeviceGetTotalEccErrors)
NO(nvmlDeviceGetTotalEnergyConsumption) NO(nvmlDeviceGetVbiosVersion) NO(nvmlDeviceGetVgpuCapabilities) NO(nvmlDeviceGetVgpuMetadata)
NO(nvmlDeviceGetVgpuProcessUtilization) NO(nvmlDeviceGetVgpuSchedulerCapabilities) NO(nvmlDeviceGetVgpuSchedulerLog)
NO(nvmlDeviceGetVgpuSchedulerState) NO(nvmlDeviceGetVgpuUtilization) NO(nvmlDeviceGetViolationStatus) NO(nvmlDeviceGetVirtualizationMode)
NO(nvmlDeviceModifyDrainState) NO(nvmlDeviceOnSameBoard) NO(nvmlDeviceQueryDrainState)
NO(nvmlDeviceRemoveGpu) NO(nvmlDeviceRemoveGpu_v2) NO(nvmlDeviceResetApplicationsClocks) NO(nvmlDeviceResetGpuLockedClocks)
NO(nvmlDeviceResetMemoryLockedClocks) NO(nvmlDeviceResetNvLinkErrorCounters) NO(nvmlDeviceResetNvLinkUtilizationCounter)
NO(nvmlDeviceSetAPIRestriction) NO(nvmlDeviceSetAccountingMode) NO(nvmlDeviceSetApplicationsClocks)
NO(nvmlDeviceSetAutoBoostedClocksEnabled) NO(nvmlDeviceSetComputeMode) NO(nvmlDeviceSetConfComputeUnprotectedMemSize)
NO(nvmlDeviceSetCpuAffinity) NO(nvmlDeviceSetDefaultAutoBoostedClocksEnabled) NO(nvmlDeviceSetDefaultFanSpeed_v2)
NO(nvmlDeviceSetDriverModel) NO(nvmlDeviceSetEccMode) NO(nvmlDeviceSetFanControlPolicy) NO(nvmlDeviceSetFanSpeed_v2)
NO(nvmlDeviceSetGpcClkVfOffset) NO(nvmlDeviceSetGpuLockedClocks) NO(nvmlDeviceSetGpuOperationMode) NO(nvmlDeviceSetMemClkVfOffset)
NO(nvmlDeviceSetMemoryLockedClocks) NO(nvmlDeviceSetNvLinkDeviceLowPowerThreshold)
NO(nvmlDeviceSetNvLinkUtilizationControl) NO(nvmlDeviceSetPersistenceMode) NO(nvmlDeviceSetPowerManagementLimit)
NO(nvmlDeviceSetPowerManagementLimit_v2) NO(nvmlDeviceSetTemperatureThreshold) NO(nvmlDeviceSetVgpuSchedulerState)
NO(nvmlDeviceSetVirtualizationMode) NO(nvmlDeviceValidateInforom) NO(nvmlEventSetWait) NO(nvmlGetBlacklistDeviceCount)
NO(nvmlGetBlacklistDeviceInfoByIndex) NO(nvmlGetExcludedDeviceCount) NO(nvmlGetExcludedDeviceInfoByIndex) NO(nvmlGetVgpuCompatibility)
NO(nvmlGetVgpuDriverCapabilities) NO(nvmlGetVgpuVersion) NO(nvmlGpmMigSampleGet)
NO(nvmlGpmQueryIfStreamingEnabled) NO(nvmlGpmSetStreamingEnabled)
NO(nvmlGpuInstanceCreateComputeInstanceWithPlacement)
NO(nvmlGpuInstanceGetComputeInstancePossiblePlacements)
NO(nvmlGpuInstanceGetComputeInstanceProfileInfoV)
NO(nvmlGpuInstanceGetComputeInstanceRemainingCapacity) NO(nvmlInit)
NO(nvmlInternalGetExportTable) NO(nvmlSetVgpuVersion) NO(nvmlSystemGetConfComputeCapabilities) NO(nvmlSystemGetConfComputeGpusReadyState)
NO(nvmlSystemGetConfComputeState) NO(nvmlSystemGetHicVersion) NO(nvmlSystemGetNVMLVersion) NO(nvmlSystemGetNvlinkBwMode)
NO(nvmlSystemGetProcessName) NO(nvmlSystemGetTopologyGpuSet) NO(nvmlSystemSetConfComputeGpusReadyState) NO(nvmlSystemSetNvlinkBwMode)
NO(nvmlUnitGetCount) NO(nvmlUnitGetDevices) NO(nvmlUnitGetFanSpeedInfo) NO(nvmlUnitGetHandleByIndex) NO(nvmlUnitGetLedState)
NO(nvmlUnitGetPsuInfo) NO(nvmlUnitGetTemperature) NO(nvmlUnitGetUnitInfo) NO(nvmlUnitSetLedState) NO(nvmlVgpuInstanceClearAccountingPids)
NO(nvmlVgpuInstanceGetAccountingMode) NO(nvmlVgpuInstanceGetAccountingPids) NO(nvmlVgpuInstanceGetAccountingStats)
NO(nvmlVgpuInstanceGetEccMode) NO(nvmlVgpuInstanceGetEncoderCapacity) NO(nvmlVgpuInstanceGetEncoderSessions)
NO(nvmlVgpuInstanceGetEncoderStats) NO(nvmlVgpuInstanceGetFBCSessions) NO(nvmlVgpuInstanceGetFBCStats) NO(nvmlVgpuInstanceGetFbUsage)
NO(nvmlVgpuInstanceGetFrameRateLimit) NO(nvmlVgpuInstanceGetGpuInstanceId) NO(nvmlVgpuInstanceGetGpuPciId)
NO(nvmlVgpuInstanceGetLicenseInfo) NO(nvmlVgpuInstanceGetLicenseInfo_v2) NO(nvmlVgpuInstanceGetLicenseStatus)
NO(nvmlVgpuInstanceGetMdevUUID) NO(nvmlVgpuInstanceGetMetadata) NO(nvmlVgpuInstanceGetType) NO(nvmlVgpuInstanceGetUUID)
NO(nvmlVgpuInstanceGetVmDriverVersion) NO(nvmlVgpuInstanceGetVmID) NO(nvmlVgpuInstanceSetEncoderCapacity) NO(nvmlVgpuTypeGetCapabilities)
NO(nvmlVgpuTypeGetClass) NO(nvmlVgpuTypeGetDeviceID) NO(nvmlVgpuTypeGetFrameRateLimit) NO(nvmlVgpuTypeGetFramebufferSize)
NO(nvmlVgpuTypeGetGpuInstanceProfileId) NO(nvmlVgpuTypeGetLicense) NO(nvmlVgpuTypeGetMaxInstances) NO(nvmlVgpuTypeGetMaxInstancesPerVm)
NO(nvmlVgpuTypeGetName) NO(nvmlVgpuTypeGetNumDisplayHeads) NO(nvmlVgpuTypeGetResolution)
