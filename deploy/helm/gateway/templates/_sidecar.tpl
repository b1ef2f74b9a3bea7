{{- define "gateway.settings" -}}{{ .Values.settings.existing | default "gateway-settings" }}{{- end }}
{{- define "gateway.hosts" -}}{{ .Values.settings.environmentFrom | default "gateway-hosts" }}{{- end }}
{{- define "gateway.config" -}}{{ .Values.settings.config | default (.Files.Get "files/gateway.yaml") }}{{- end }}

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

{{- define "gateway.sidecar" -}}
- name: gateway
  image: {{ .Values.images.gateway }}
  {{- if .Values.sidecar.native }}
  restartPolicy: Always  # a native sidecar: starts before the application, stops after it
  {{- end }}
  args: [run, /etc/gateway, --log-format, json]
  env:
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
  envFrom:
    - configMapRef: {name: {{ include "gateway.hosts" . }}}
  ports:
    - {name: web, containerPort: 8047}
  startupProbe:          # the process only: a disconnected broker does not block the start
    httpGet: {path: /healthz, port: web}
    periodSeconds: 1
    failureThreshold: 60
  livenessProbe:
    httpGet: {path: /healthz, port: web}
    periodSeconds: 10
    timeoutSeconds: 3
  readinessProbe:        # of the whole pod: an outage at the far end must not stop a rollout
    httpGet: {path: {{ .Values.sidecar.readinessPath }}, port: web}
    periodSeconds: 5
    timeoutSeconds: 3
  resources:
    {{- toYaml .Values.sidecar.resources | nindent 4 }}
  securityContext:
    {{- include "gateway.hardened" . | nindent 4 }}
  volumeMounts:
    - {name: settings, mountPath: /etc/gateway, readOnly: true}
    - {name: secrets, mountPath: /run/secrets/gateway, readOnly: true}
    - {name: state, mountPath: /var/lib/gateway}
    - {name: scratch, mountPath: /tmp}
{{- end }}
