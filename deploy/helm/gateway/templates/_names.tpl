{{- define "gateway.name" -}}{{ .Values.name | default .Release.Name | trunc 39 | trimSuffix "-" }}{{- end }}
{{- define "gateway.settings" -}}{{ .Values.settings.existing | default (printf "%s-settings" (include "gateway.name" .)) }}{{- end }}
{{- define "gateway.hosts" -}}{{ .Values.settings.environmentFrom | default (printf "%s-hosts" (include "gateway.name" .)) }}{{- end }}
{{- define "gateway.config" -}}
{{- .Values.settings.config | default (.Files.Get (ternary "files/pair.yaml" "files/gateway.yaml" .Values.standby.enabled)) }}
{{- end }}
{{- define "gateway.archive" -}}{{ .Values.archive.url | default "/var/lib/gateway/archive" }}{{- end }}
{{- define "gateway.claim" -}}{{ .Values.storage.existing | default (printf "%s-state" (include "gateway.name" .)) }}{{- end }}
{{- define "gateway.account" -}}{{ .Values.serviceAccount.name | default (include "gateway.name" .) }}{{- end }}

{{- /* Not empty: one claim for all replicas, and not one for each. */}}
{{- define "gateway.oneClaim" -}}{{ if or .Values.storage.shared .Values.storage.existing }}true{{ end }}{{- end }}
{{- define "gateway.accessMode" -}}
{{ .Values.storage.accessMode | default (ternary "ReadWriteMany" "ReadWriteOnce" (eq (include "gateway.oneClaim" .) "true")) }}
{{- end }}
{{- define "gateway.hasAccount" -}}{{ if or .Values.standby.enabled .Values.serviceAccount.create .Values.serviceAccount.name }}true{{ end }}{{- end }}
{{- define "gateway.replicas" -}}{{ ternary 2 (int .Values.replicas) .Values.standby.enabled }}{{- end }}

{{- /* Labels that never change: a list of root and component. */}}
{{- define "gateway.selector" -}}
app.kubernetes.io/name: gateway
app.kubernetes.io/instance: {{ include "gateway.name" (first .) }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ (first .).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (first .).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (first .).Chart.Name (first .).Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gateway.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "gateway.hardened" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Of the gateway's pods and of those of the night. */}}
{{- define "gateway.placement" -}}
automountServiceAccountToken: false
{{- if include "gateway.hasAccount" . }}
serviceAccountName: {{ include "gateway.account" . }}
{{- end }}
{{- with .Values.pod.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- include "gateway.podSecurity" . | nindent 2 }}
{{- end }}
