# Runs ptxas and keeps what it says of each kernel (registers, stack), which a test reads.
execute_process(COMMAND ${PTXAS} -v -arch=sm_${ARCHITECTURE} -o ${CUBIN} ${PTX}
  ERROR_VARIABLE said RESULT_VARIABLE result)
file(WRITE ${CUBIN}.log "${said}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PTXAS} -arch=sm_${ARCHITECTURE} failed (${result}): ${said}")
endif()
